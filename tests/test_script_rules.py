"""What bash does at the edges of background commands, redirections, traps and readonly names.

All scripts run once, in one cluster; what they print is what bash 5.2 prints.
"""

from __future__ import annotations

import pytest

from simctl.stepd.scripts.file_tests import may
from simctl.stepd.scripts.host import Info
from simctl.stepd.scripts.tools.files import _mode
from tests.bash_runs import Came, in_ours

RULES = {
    # A `!` before a background command has no effect on what wait tells.
    "! false & wait $!; echo $?": "1\n",
    "! true | true & wait $!; echo $?": "0\n",
    "! (exit 3) & wait $!; echo $?": "3\n",
    "true && ! true & wait $!; echo $?": "1\n",
    # What a redirection stands for is expanded by the process that it is for.
    "trap 'echo E$?' ERR; (echo a) > ${none?bad}; echo on": "E1\non\n",
    "set -e; (echo a) > $((1/0)) || echo no; echo on": "no\non\n",
    "set -u; cat <<< $none; echo $?": "1\n",
    "cat <<< ${x:=5}; echo [$x]; read y <<< ${x:=6}; echo $x": "5\n[]\n6\n",
    "env ${!none} | cat; echo ${PIPESTATUS[*]}": "1 0\n",
    "x=5 > /no/where; echo $? $x": "1 5\n",
    # A subshell lets go of the descriptors that it had, so nobody waits for it at the other end.
    "x=$( (sleep 9) > /dev/null & echo hi); echo $x $SECONDS": "hi 0\n",
    "x=$( (exec > /dev/null; sleep 9) & echo hi); echo $x $SECONDS": "hi 0\n",
    # A readonly name before a command is told, and the command runs without it.
    "readonly r=1; r=2 q=3 eval 'echo $r $q'; echo $?": "1 3\n0\n",
    "readonly r=1; r=2 env | grep ^r; echo ${PIPESTATUS[*]}": "0 1\n",
    "readonly r=1; set -e; r=2 true || echo no; echo on": "",
    "readonly r=1; f() { local r=2; echo $? $r; }; f": "1 1\n",
    # Functions begin without the ERR trap, and may set their own.
    "trap 'echo E' ERR; f() { false; (false); return 2; }; f": "E\n",
    "f() { trap 'echo E' ERR; false; }; f; echo on; false": "E\non\nE\n",
    "trap 'echo A' ERR; f() { trap 'echo B' ERR; false; }; f; false": "B\nB\nB\n",
    "set -E; trap 'echo E' ERR; f() { false; true; }; f": "E\n",
    # Traps run as soon as a subshell or a pipeline has ended.
    "trap 'echo T' USR1; (kill -USR1 $$; exit 3); echo $?": "T\n3\n",
    "trap 'echo T' USR1; kill -USR1 $$ | cat; echo on": "T\non\n",
    # In the background INT and QUIT are ignored by programs and shells, not by what those start.
    "sleep 3 & kill -INT $!; wait $!; echo $? $SECONDS": "0 3\n",
    "(kill -INT $BASHPID; echo on) & wait $!; echo $?": "on\n0\n",
    "(trap 'echo T' INT; kill -INT $BASHPID) & wait $!; echo $?": "T\n0\n",
    "(bash -c 'kill -INT $$; echo on') & wait $!; echo $?": "130\n",
    "(kill -INT $BASHPID; echo on); echo $?": "130\n",
    # kill reaches the process that it names, and nothing that this has started.
    "(sleep 3; echo a > f) & sleep 1; kill $!; wait $!; echo $?; sleep 3; cat f": "143\n",
    "(trap 'echo T' TERM; sleep 3; echo on) & sleep 1; kill $!; wait; echo $SECONDS": "T\non\n3\n",
    # A shell that waits in the foreground takes INT for what its child makes of it.
    "(sleep 1; kill -INT $$; sleep 1; echo in); echo on": "in\non\n",
    "(bash -c 'sleep 1; kill -INT $PPID; kill -INT $$'; echo on); echo $?": "130\n",
    # jobs in a substitution or a pipe tells of the shell's own, which it cannot wait for.
    "sleep 5 & sleep 1 & echo $(jobs -r | wc -l); sleep 2; echo $(jobs -rp | wc -l)": "2\n1\n",
    "sleep 9 & (jobs; wait $!; echo $?)": "127\n",
    "sleep 9 & jobs -l | sed 's/ [0-9]* / P /'": "[1]+ P Running                 sleep 9 &\n",
    # A file that is opened both ways is written where reading has come to.
    "echo abcd > f; exec 3<> f; read -rn 1 x <&3; printf X >&3; cat f": "aXcd\n",
    # The EXIT trap runs where the script is left, also by a signal, which then ends it.
    "(trap 'echo bye' EXIT; sleep 9) & sleep 1; kill $!; wait $!; echo $? $SECONDS": "bye\n143 1\n",
    "(trap 'echo bye; exit 3' EXIT; kill -HUP $BASHPID; :); echo $?": "bye\n129\n",
    "(trap 'echo bye' EXIT; kill -KILL $BASHPID); echo $?": "137\n",
    "trap 'echo $v $1' EXIT; f() { local v=in; exit 3; }; f arg": "in arg\n",
    "(trap 'echo bye' EXIT; { exit 3; } > f); echo $?; cat f": "3\nbye\n",
    # set -x shows what is assigned before it is, and PS4 expanded, repeated in substitutions.
    "exec 2>&1; PS4='+$((++n)) '; set -x; x=$(echo a); export y=; : \"$x b\"": (
        "++1 echo a\n+1 x=a\n+2 export y=\n+3 y=\n+4 : 'a b'\n"
    ),
    # Of compound commands it shows words as they are written, and tests and sums expanded.
    "{ set -x; for i in 'a b' $w; do case \"$i\" in x) ;; esac; done; } 2>&1": (
        "+ for i in 'a b' $w\n+ case \"$i\" in\n"
    ),
    'i=2; { set -x; [[ $i == "2" && ! -z $w ]]; [[ ! ( a == b* ) ]]; } 2>&1': (
        "+ [[ 2 == \\2 ]]\n+ [[ ! -z '' ]]\n+ [[ a == b* ]]\n"
    ),
    "i=2; { set -x; (($i > 1)); for ((;i<3;i++)); do :; done; } 2>&1": (
        "+ (( 2 > 1 ))\n+ (( 1 ))\n+ (( i<3 ))\n+ :\n+ (( i++ ))\n+ (( i<3 ))\n"
    ),
    "{ set -x; a=( $w 'b c' ); a[$w]=; declare -a c=('b c'); } 2>&1": (
        "+ a=($w 'b c')\n+ a[$w]=\n+ c=('b c')\n+ declare -a c\n"
    ),
    # Words are quoted where a shell would look at them, and by printf at more places.
    "{ set -x; : a#b '#' \"'\" x~ =~; } 2>&1": "+ : a#b '#' \\' x~ '=~'\n",
    "printf '%q ' a,b a#b '#' a~ :~ \"'\"; declare -A m=([@]=1); declare -p m": (
        'a\\,b a#b \\# a~ :\\~ \\\' declare -A m=(["@"]="1" )\n'
    ),
    # A subscript that comes to nothing is 0, but in the list of an array's elements.
    "a=(1 2); a[$w]=7; a+=([$w]=8 9); echo ${a[*]} ${a[$w]} ${a[$w]-unset}": "7 2 9 7 7\n",
    # An array that is declared alone is one from then on.
    "declare -a s; declare -p s; s=y; declare -p s; declare -A s; echo $?": (
        'declare -a s\ndeclare -a s=([0]="y")\n1\n'
    ),
    # A subshell that ends with killing itself has no EXIT trap any more, one that goes on has.
    "(trap 'echo bye' EXIT; { ! kill -HUP $BASHPID; }); echo $?": "129\n",
    "(trap 'echo bye' EXIT; f() { kill -HUP $BASHPID; }; f); echo $?": "129\n",
    "(trap 'echo bye' EXIT; kill -HUP $BASHPID || :); echo $?": "bye\n129\n",
    # A word without a value undoes what redirects a subshell from outside, before its EXIT trap.
    "f() { (trap 'echo bye' EXIT; echo $((1/0))); echo $?; }; f > f; echo on; cat f": (
        "bye\non\n1\n"
    ),
    "eval \"(trap 'echo bye' EXIT; echo \\$((1/0)))\" > f; echo on; cat f": "on\nbye\n",
    # One that fails under set -e undoes those of the innermost function or eval that has any.
    "f() { (set -e; trap 'echo E' EXIT; false); echo $?; }; f > f; cat f": "E\n1\n",
    "f() { (set -e; trap 'echo E' EXIT; (exit 3)); echo $?; }; f > f; cat f": "E\n3\n",
    "f() { (set -e; trap 'echo E' EXIT; false) > g; }; f > f; echo on; cat f g": "E\non\n",
    "{ (set -e; trap 'echo E' EXIT; false); } > f; echo on; cat f": "on\nE\n",
    "g() { false; }; f() { (set -e; trap 'echo E' EXIT; g); }; f > f; echo on": "E\non\n",
    "g() { false; }; f() { (set -e; trap 'echo E' EXIT; g > g); }; f > f; echo on": "on\n",
    "eval \"(set -e; trap 'echo E' EXIT; false)\" > f; echo on; cat f": "E\non\n",
    "(set -e; trap 'echo E' EXIT; f() { [[ a == b ]]; }; f > f); echo on; cat f": "on\nE\n",
    # Its EXIT trap sees no local variables, unless the shell is a subshell or leaves by itself.
    "q=0; f() { local q=1; false; }; set -e; trap 'echo $q' EXIT; f": "0\n",
    "q=0; f() { local q=1; (exit 3); }; set -e; trap 'echo $q $1' EXIT; f a": "0 a\n",
    "q=0; f() { local q=1; exit 3; }; trap 'echo $q' EXIT; f": "1\n",
    "q=0; (set -e; trap 'echo $q' EXIT; f() { local q=1; false; }; f)": "1\n",
    # Each opening of a file writes where it has come to, whatever others have made of the file.
    "{ echo abc; echo hello > f; echo XY; } > f; cat f; echo a 1<> f; cat f": "hellXY\na\nllXY\n",
    "{ echo abc; echo hello >> f; echo XY; } > f; cat f": "abc\nXY\nlo\n",
    "{ echo abc; : > f; echo XY; } > f; wc -c f": "7 f\n",
    # In a regular expression a newline is a character like any other.
    "v=$'ab\\n'; [[ $v =~ ^([a-z]+)(.*)$ ]]; echo \"${BASH_REMATCH[2]}|\"": "\n|\n",
    "v=$'ab\\n'; [[ $v =~ b$ ]] || echo no; v=$'a\\nb'; [[ $v =~ ^b ]] || echo no": "no\nno\n",
    "v=$'a\\nb'; [[ $v =~ a.b ]]; echo $?; expr \"$v\" : '.*'": "0\n3\n",
    # A branch of case begins with the status there was, an empty one is a success.
    "false; case x in x) echo $?;; esac; false; case x in x) ;; esac; echo $?": "1\n0\n",
    "false; case x in y) ;; esac; echo $?; false; case x in x) ;& y) echo $?;; esac": "0\n1\n",
    # Under set -m what is in the background minds INT, and is a process group.
    "set -m; echo $-; sleep 3 & kill -INT $!; wait $!; echo $? $SECONDS": "hmB\n130 0\n",
    "set -m; (sleep 3; echo no) & kill -- -$!; wait $!; echo $?; sleep 9; kill -- -9": "143\n",
    "(sleep 3; echo on) & kill -- -$!; echo $?; wait": "1\non\n",
    # A word of a test or a sum without a value skips the line; an operand that has none fails.
    "if [[ $((1/0)) ]] || :; then echo no; fi\n[[ 1/0 -eq 1 ]]; echo $?": "1\n",
    "if (($((1/0)))) || :; then echo no; fi\n((1/0)); echo $?": "1\n",
    "set -e; for ((;1/0;)); do :; done; for ((i=0;i<2;i=1/0)); do echo $?; done": "1\n",
    # unset leaves the function's own variable without a value, and uncovers what another's hides.
    "v=1; f() { local v=2; g; echo $v; }; g() { unset v; echo $v; v=3; }; f; echo $v": "1\n3\n3\n",
    "v=1; f() { local v=2; unset v; echo ${v-unset}; v=3; }; f; echo $v": "unset\n1\n",
    # find runs a command for each path or for all, and shows none by itself then.
    "mkdir d; echo b > d/b; find d -type f -exec cat {} \\; ; find d -exec echo {} +": "b\nd d/b\n",
    "find . -exec false {} +; echo $?; find . -print -exec false \\; ; echo $?": "1\n.\n0\n",
    # What is called by a path is not there, or is a directory.
    "mkdir d; ./d 2>&1 | sed 's/.*d: //'; ./no 2>&1 | sed 's/.*no: //'; ./d; ./no; echo $?": (
        "Is a directory\nNo such file or directory\n127\n"
    ),
    # An array before a command is a text for it, and an element is refused.
    "a=(1 'b c') env | grep ^a; a[1]=5 env | grep ^a; a=([k]=2) eval 'echo $a ${#a[@]}'": (
        "a=(1 b c)\n([k]=2) 1\n"
    ),
    # The process group is the script and all that it has started.
    "trap 'echo T' TERM; (sleep 9; echo no) & sleep 1; kill 0; wait; echo $SECONDS": "T\n1\n",
    "kill -0 0; echo $?; kill -- -99999; echo $?": "0\n1\n",
    # Under set -u an array has to be there, its elements need not.
    "set -u; declare -A m=([x]=1); ((m[y] += 5)); a=(); echo ${m[y]} $((a[3])) ${#a[@]}": "5 0 0\n",
    "(set -u; echo ${#none[@]}); (set -u; echo $((none[1]))); echo $?": "1\n",
    # A subscript before the first element is told, and there is nothing there.
    "a=(x); echo [${a[-2]}] ${a[-2]:-d}; [[ -v a[-2] ]]; echo $?": "[] d\n1\n",
    "a=(); ((a[-1])); echo $? $((a[-1] + 2)); ((a[-1] = 3)); echo $? ${#a[@]}": "1 2\n0 0\n",
    "a=(x y); echo [${a[*]:2:-1}]; echo on; echo ${a[*]:1:-1}\necho next": "[]\non\nnext\n",
    "v=a; v=(${!none})\ndeclare -p v": 'declare -a v=([0]="a")\n',
    # A descriptor that is moved onto itself stays open.
    "{ echo out; echo err >&2; } 2>&1 2>&2-": "out\nerr\n",
    # printf's %(...)T without an argument is the present.
    "[ $(printf '%(%F)T') = $(date +%F) ] && echo now; printf '%(%Y)T' 0": "now\n1970",
    # What is behind a place is counted from the last index, also where indices are left out.
    "a=([2]=x [5]=y [9]=z); echo ${a[@]: -4},${a[@]: -5},${a[@]: -5:1},${a[@]: -9}": (
        "z,y z,y,x y z\n"
    ),
    # The digits of an octal number in %b may have a 0 before them.
    "printf '%b,' '\\0101' '\\101' '\\01012' '\\1012'": "A,A,A2,A2,",
    # A range of sed that is over with its first line lets the next begin at once.
    "printf '%s\\n' x1 x2 a x3 | sed -n '/x/,1p;/x/,2s/^/2/p'": "x1\n2x1\nx2\n2x2\nx3\n2x3\n",
    # awk counts the length of a part from where it would begin before the text.
    'awk \'BEGIN { for (i = -2; i < 3; i++) printf "%s,", substr("abcd", i, 3) }\'': (
        ",a,ab,abc,bcd,"
    ),
    # A dot that is quoted finds hidden files like one that is not.
    "touch .x .y z; echo '.'[xy] \\.[xy] .[xy] [.xyz]": ".x .y .x .y .x .y z\n",
    # Elements stand for their words together: a colon asks whether those are empty.
    "a=('' b); b=(''); d=('' ''); echo ${a[*]:-x} ${a[@]:+y} ${b[@]:-x} \"${d[@]:-x}\"": (
        "b y x  \n"
    ),
    # What && and || leave out is not computed, whichever side of ?: in it would be chosen.
    "echo $((0 && (0 ? (n=5) : (n=6)))) $((1 || (1 ? 2/0 : 3/0) || (0 ? 2/0 : 3/0))) $n.": (
        "0 1 .\n"
    ),
    # Of several choices the longest that fits counts, also at the end of the line.
    "echo ab abc | grep -oE 'a|ab'; echo aab | sed -E 's/a|aab/X/'; [[ ab =~ a|ab ]]; echo $?": (
        "ab\nab\nX\n0\n"
    ),
    # shopt -q asks for all of its names, and a directory is never empty to -s.
    "shopt -s extglob; shopt -q extglob nullglob; echo $?; shopt -q nullglob extglob; echo $?": (
        "1\n1\n"
    ),
    "mkdir d; : > e; [ -s d ]; echo $?; [ -s e ]; echo $?; [[ -s d ]]; echo $?": "0\n1\n0\n",
    # What is an amount of days ago, and itself negative, lies ahead.
    "for d in '1 day' '-1 day' '1 day ago' '-1 day ago'; do date -d \"1970-01-09 $d\" +%d; done": (
        "10\n08\n08\n10\n"
    ),
    # Among five words and more an operator of one operand takes whatever comes next.
    "[ -n -a x ]; echo $?; [ \\( -z \\) ]; echo $?; [ x -a -n ]; echo $?": "0\n0\n0\n",
    "[ -n -a -n y ]; echo $?; [ \\( -n \\) -a x ]; echo $?; [ x -a -n -o ]; echo $?": "2\n2\n0\n",
    # A quoted word that comes to nothing is a word.
    'x=; f() { echo $#; }; f "${x:-}"; f ${x:-}; f "${x:+}" "${y-}"; f "${y[@]:-}"': "1\n0\n2\n1\n",
    # The last of -e and -E counts.
    "for o in '-e -E' '-E -e' -eE -Ee '-e -n' -E; do echo $o 'a\\tb'; done": (
        "a\\tb\na\tb\na\\tb\na\tb\na\tba\\tb\n"
    ),
    # Lines that mapfile skips are none of those that it reads.
    "seq 5 > f; for i in 1 2 3 4; do mapfile -ts $i -n 2 A < f; echo ${A[*]}; done": (
        "2 3\n3 4\n4 5\n5\n"
    ),
    # A home is meant before a colon, a slash and the end, and not within a word.
    "HOME=/h; P=~:/b; Q=/a:~:~/x:~; R=/a:~x:a~; echo $P $Q $R": "/h:/b /a:/h:/h/x:/h /a:~x:a~\n",
    # Words of a brace expansion are counted by their step.
    "echo {0..1000000..500000} {10..1..4} {a..i..3}": "0 500000 1000000 10 6 2 a d g\n",
    # Levels of continue and break.
    "for i in 1 2; do for j in 1 2; do [ $j = 2 ] && continue 2; echo $i$j; done; done": "11\n21\n",
    "for i in 1 2; do for j in 1 2; do [ $j = 2 ] && break 2; echo $i$j; done; done": "11\n",
    "n=0; while [ $((n++)) -lt 3 ]; do for j in 1; do continue 2; done; done; echo $n": "4\n",
    # kill succeeds if it reached one of those that it names.
    "sleep 9 & kill 99999 $!; echo $?; wait $!; echo $?; kill 99998 99999; echo $?": "0\n143\n1\n",
    # A key of sort with a letter of its own takes none of those before it, b included.
    "printf 'a 10\\na 9\\n' > f; sort -n -k2b f; sort -n -k2,2b f; sort -nb -k2 f": (
        "a 10\na 9\na 10\na 9\na 9\na 10\n"
    ),
    "printf 'a  10\\na 9\\n' | sort -r -k2b": "a  10\na 9\n",
    # awk takes a field that looks like a number for one, also as a condition.
    "printf '0.0 1\\n 0 2\\n00 4\\n0x 5\\n-0 6\\n' | awk '$1 { print $2 }'": "5\n",
    # An exponent below zero is an error also in what && or ?: has switched off; a division is none.
    "(( 1 || 2 ** -1 )); echo $? $((0 && 1/0)) $((1 ? 2 : 1%0)); (echo $((0 && 2**(0-1))))": (
        "1 0 2\n"
    ),
    "((0 && (1 ? (x=5) : 2))); ((1 || (0 ? 1 : (y=2)))); echo [$x$y]": "[]\n",
    # What is quoted behind =~ stands for itself, between what is not.
    '[[ aa =~ "a{2}" ]]; echo $?; [[ "a{2}" =~ "a{2}" ]]; echo $?; [[ aa =~ "a"{2} ]]; echo $?': (
        "1\n0\n0\n"
    ),
    # Parts of an array with gaps are counted by what there is, from behind its last index.
    "a=([2]=x [5]=y [9]=z); echo ${a[@]: -4} ${a[@]: -5:2}, ${a[@]:3:1} ${a[-1]}": "z y z, y z\n",
    "a=('' b); echo [${a[@]:-x}]; a=(''); echo [${a[@]:-x}]; a=('' ''); echo [${a[*]:-x}]": (
        "[ b]\n[x]\n[ ]\n"
    ),
    # A range of sed whose end by number is over is its first line alone.
    "printf '%s\\n' a x b x c > f; sed -n '/x/,1p' f; sed '/x/,3d' f": "x\nx\na\nc\n",
    # tr squeezes what came of a change by the last set.
    "echo aabbAA | tr -s a-z A-Z; echo aabbcc | tr -s a-b; echo ab | tr -s ab xx": "ABA\nabcc\nx\n",
    # The sign counts for the padding of a brace's numbers.
    "echo {-05..5..5} {-5..05..5}": "-05 000 005 -5 00 05\n",
    # A file that grep cannot read outweighs what it finds, and what it does not find.
    "echo a > f; grep b none f 2>&-; echo $?; grep a none f 2>&-; echo $?": "2\nf:a\n2\n",
    # Lines with fewer fields than uniq skips are alike.
    "printf 'a\\nb\\na b c\\n' | uniq -f 2": "a\na b c\n",
    # Who writes into a full pipe is woken as its last reader goes, which may have read nothing.
    "yes | sleep 1; echo ${PIPESTATUS[*]} $SECONDS": "141 0 1\n",
    # A job's number is one above those that there are, and local variables are as exported as
    # those that they stand before.
    "sleep 1 & sleep 4 & wait %1; sleep 6 & wait %2; echo $SECONDS; wait %3; echo $SECONDS": (
        "4\n7\n"
    ),
    "export X=1; f() { local X=2 Y=3; env | grep ^[XY]=; local Z; }; f; env | grep ^X": (
        "X=2\nX=1\n"
    ),
    # The second signal of timeout comes the time of -k after the first.
    "timeout -k 2 3 bash -c 'trap \"\" TERM; sleep 9; sleep 9'; echo $? $SECONDS": "137 5\n",
    # The last of -e and -E counts, seq has the decimals of its start and step, grep -L the status
    # of any grep.
    "echo -e -E 'a\\tb'; echo -E -e 'a\\tb'; echo -Ee 'a\\tb'": "a\\tb\na\tb\na\tb\n",
    "echo $(seq 1 2.50) $(seq 1.0 2) $(seq 0.10 0.1 0.3)": "1 2 1.0 2.0 0.10 0.20 0.30\n",
    "echo a > f; grep -L a f; echo $?; grep -L b f; echo $?": "0\nf\n1\n",
    "echo ab | grep -oE 'a|ab'; echo aab | sed -E 's/a|aa/X/'": "ab\nXb\n",
    "touch .hid vis; echo '.'* \\.h* *": ".hid .hid vis\n",
    "case - in [a-]) echo y;; esac; case b in [a-]) ;; *) echo n;; esac": "y\nn\n",
    "mkdir d; [ -s d ]; echo $?; : > e; [ -s e ]; echo $?": "0\n1\n",
    "shopt -s extglob; shopt -q nullglob extglob; echo $?; shopt -q extglob nullglob; echo $?": (
        "1\n1\n"
    ),
    "f() { echo f; }; unset -v f; f; unset f; f 2> /dev/null; echo $?": "f\n127\n",
    "for d in '-1 day ago' '1 day ago' '-1 day'; do date -ud \"2026-01-05 $d\" +%d; done": (
        "06\n04\n04\n"
    ),
    "basename .sh .sh; basename a.sh .sh": ".sh\na\n",
    # An error of the shell's own ends a script under `set -e` at once, tested or not, with $? if
    # that is a failure. Errors of builtins and arithmetic do not, nor any in a tested eval or `.`.
    "set -e; readonly r=1; r=2 true || echo no; echo on": "",
    "set -e; readonly r=1; if r=2; then :; fi; echo on": "",
    "set -e; readonly r=1; ! for r in 1; do :; done; echo on": "",
    "set -e; readonly r=1; export r=2 || echo no; echo on": "",
    "set -e; readonly r=1; declare r=2 || echo no; unset r || echo no; echo on": "no\nno\non\n",
    "set -e; a=(1); : ${a[-9]} || echo no; echo on": "",
    "set -e; a=(1); a[-9]=3 || echo no; echo on": "",
    "set -e; a=(1); ((a[-9] == 0)) && echo no; echo on": "",
    "set -e; : $((1/0)) || echo no\necho on": "on\n",
    "set -e; trap 'echo E$?' EXIT; f() { return 4; }; a=(1); f || a[-9]=3; echo on": "E4\n",
    "set -e; x= ; cat < $x || echo no; : ${!x} || echo no; echo on": "no\n",
    "set +e; a=(1); : ${a[-9]} || echo no; echo on": "on\n",
    "set -e; if . /no/such; then :; else echo no; fi; command . /no/such || echo n; echo on": (
        "no\nn\non\n"
    ),
    "set -e; eval '. /no/such || echo no'; builtin . /no/such || echo no; echo on": "no\n",
    "set -e; f() { . /no/such; echo in; }; f || :; echo on": "in\non\n",
    "set -e; readonly r=1; eval 'r=2 true; echo in' || :; r=2 true || :; echo on": "in\n",
    "set -e; eval 'set -e; : ${a[-9]}; echo in' || :; eval false || echo no; echo on": (
        "in\nno\non\n"
    ),
    # Which status an error has, how far it skips, and whom it passes by.
    "set -e; . /tmp || echo no; builtin . /tmp || echo no; echo on": "no\nno\non\n",
    "set -e; shopt -s failglob; f() { return 4; }; trap 'echo E$?' EXIT; f || echo /no*x": "E1\n",
    "shopt -s failglob; echo /no*x || echo no\necho $?; cat < /no*x || echo no": "1\nno\n",
    "a=(1); : ${a[-9]:=x} || echo no; echo in\necho $?": "2\n",
    ": ${none[@]=3}; echo in\necho $?": "2\n",
    "a=(1); echo ${#a[]}; echo in\necho $?": "1\n",
    "set -- x y; echo ${!@}; echo in\necho $?": "1\n",
    "set -- HOME; echo ${!@}": "/home/alice\n",
    'read -a "a[1]" <<< x; echo $?; read "a[1]" <<< y; echo $? ${a[1]}': "1\n0 y\n",
    'export "a[1]=2"; echo $?; readonly a[1]=2; echo $?; declare a[1]=3; echo ${a[1]}': "1\n1\n3\n",
    "getopts ab 1x -a; echo $? $OPTIND": "1 2\n",
    "readonly n; getopts ab n -b; echo $? $OPTIND; getopts a n x; echo $?": "2 2\n1\n",
    "mapfile 1x <<< y; echo $?; mapfile -n x a <<< y; echo $? $a": "1\n1\n",
    "mapfile -u 9 a; echo $?; exec 9<<< y; mapfile -u 9 a; echo $? $a": "1\n0 y\n",
    "printf -v 1x y; echo $?; printf -v; echo $?; printf -vx y; echo $? $x": "2\n2\n0 y\n",
    "printf ----; echo $?; printf -- -; echo": "2\n-\n",
    "disown %9; echo $?; disown 999; echo $?; sleep 1 & disown %1; disown; echo $?": "1\n1\n1\n",
    "sleep 1 & sleep 2 & jobs %9; echo $?; jobs %1 | wc -l; export -f nosuch; echo $?": "1\n1\n1\n",
    "set -- 1 2 3; shift 1 2; echo in\necho $? $#": "1 3\n",
    "umask 27; umask u=rx,go=; umask; umask u=rx,u-r,o=w; umask": "0277\n0675\n",
    "umask 27; umask u+r-w,o=w; umask; umask a+; umask; umask a; echo $?": "0027\n0027\n1\n",
    "readonly r=1; trap 'echo E' ERR; for r in 1; do :; done; echo $?": "1\n",
    "trap 'echo E$?' EXIT; exec nosuch; echo on": "E127\n",
    "trap 'echo E$?' EXIT; exec /no/such; echo on": "",
    "x=(1 2); x=(1 [-1]=5 [1/0]=1 3); echo in\necho $? ${x[*]}": "1 5\n",
    "echo fi > f; . ./f; echo $?": "2\n",
}


@pytest.fixture(scope="module")
def came() -> dict[str, Came]:
    """Return what came of each script."""
    return dict(zip(RULES, in_ours(list(RULES)), strict=True))


@pytest.mark.parametrize("text", RULES)
def test_each_does_what_bash_does(came: dict[str, Came], text: str) -> None:
    """By what it prints; `python -m tests.script_corpus` has looked for more of the kind."""
    assert came[text].output == RULES[text]


MODULES = {
    "load gcc/12.2 mpi; module unload gcc": "mpi",
    "load gcc/12.2 mpi; module rm gcc/12.2": "mpi",
    "load gcc/12.2 mpi; module unload gcc/11 mp 12.2": "gcc/12.2:mpi",
    "load gcc/12.2 mpi; module load gcc/12.2": "mpi:gcc/12.2",
    "load gcc/12.2 mpi; module swap gcc gcc/13": "mpi:gcc/13",
    "load gcc/12.2 mpi; module swap gcc/11 gcc/13": "mpi:gcc/13",
    "load gcc/12.2 mpi; module purge; module -q load x": "x",
}


def test_modules_are_loaded_and_unloaded_by_name_with_a_version_or_without() -> None:
    """LOADEDMODULES tells of them, also the programs that a script starts."""
    scripts = [f"module {each}; bash -c 'echo $LOADEDMODULES'" for each in MODULES]
    assert [each.output for each in in_ours(scripts)] == [f"{each}\n" for each in MODULES.values()]


@pytest.mark.parametrize(
    ("mode", "is_dir", "uid", "rights"),
    [
        *((0o754, False, 1001, "rwx"), (0o754, False, 1002, "r"), (0o077, False, 1001, "")),
        *((0o077, False, 1002, "rwx"), (0o640, False, 0, "rw"), (0o001, False, 0, "rwx")),
        *((0o100, False, 0, "rwx"), (0o010, False, 0, "rwx"), (0o000, True, 0, "rwx")),
        *((0o000, True, 1001, ""), (0o000, False, 0, "rw")),
    ],
)
def test_root_executes_what_somebody_may_and_reads_and_writes_all(
    mode: int, is_dir: bool, uid: int, rights: str
) -> None:
    """Others by the rights of the owner, or of those who are not; as scripts' tests tell."""
    found = Info(is_dir=is_dir, size=1, mode=mode, uid=1001)
    assert (
        "".join(name for name, bit in zip("rwx", (4, 2, 1), strict=True) if may(found, bit, uid))
        == rights
    )


# What becomes of files of the modes 000, 640, 755 and 711 under umask 022; of directories as well,
# or what is behind the comma.
CHANGED = {
    "755": "755 755 755 755",
    "7": "007 007 007 007",
    "0640": "640 640 640 640",
    "u+x": "100 740 755 711",
    "+r": "444 644 755 755",
    "+w": "200 640 755 711",
    "+x": "111 751 755 711",
    "a-x": "000 640 644 600",
    "go-w": "000 640 755 711",
    "u=rw,go=r": "644 644 644 644",
    "u=": "000 040 055 011",
    "=r": "444 444 444 444",
    "-x": "000 640 644 600",
    "a=rwx": "777 777 777 777",
    "o-rwx": "000 640 750 710",
    "ug-x": "000 640 645 601",
    "+X": "000 640 755 711, 111 751 755 711",
    "a+X": "000 640 755 711, 111 751 755 711",
    "u+X": "000 640 755 711, 100 740 755 711",
    "g+rwx,o+x": "071 671 775 771",
    "u-w,u+x": "100 540 555 511",
    "go=X": "000 600 711 711, 011 611 711 711",
    "uo+w": "202 642 757 713",
    "=": "000 000 000 000",
    "a=": "000 000 000 000",
    "-w": "000 440 555 511",
}


@pytest.mark.parametrize("text", CHANGED)
def test_chmod_changes_modes_as_coreutils_does(text: str) -> None:
    """Of whom, of all but what umask has, and X by whether anybody may execute it."""
    for is_dir, told in enumerate((CHANGED[text].split(", ") * 2)[:2]):
        modes = [_mode(text, old, is_dir=bool(is_dir)) for old in (0, 0o640, 0o755, 0o711)]
        assert [f"{mode:03o}" for mode in modes] == told.split()


NO_NUMBERS = (
    *("RANDOM=²", "SECONDS=²", "OPTIND=²; getopts a o -a", "[ -e /dev/fd/² ]", "read -u ² x"),
    *("read -n ² x <<< a", "read -N ² x <<< a", "mapfile -n ² x <<< a", "mapfile -s ² <<< a"),
    *("mapfile -O ² <<< a", "mapfile -u ²", "kill -l ²", "disown ²", "jobs ²", "wait -n ²"),
    *("uniq -f ² <<< a", "grep -m ² a <<< a", "grep -A ² a <<< a", "grep -B ² a <<< a"),
    *("xargs -n ² <<< a", "xargs -L ² <<< a", "xargs -P ² <<< a", "find . -maxdepth ²"),
    *("nproc --ignore=²", "nproc --ignore=x", "SLURM_CPUS_ON_NODE=x nproc", "sed 's/a/\\²/' <<< a"),
    *("OPTIND=x; getopts a o -a", "getopts ab o -ab; getopts ab o -a; getopts ab o x"),
)


def test_what_looks_like_a_number_and_is_none_is_no_harm() -> None:
    """Scripts go on behind it: for Python ``²`` is a digit that is no number."""
    ran = in_ours([f"{each}\necho on" for each in NO_NUMBERS])
    assert [each.output.endswith("on\n") for each in ran] == [True] * len(NO_NUMBERS)

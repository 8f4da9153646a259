"""Batch scripts: the parser of the shell language, and the shell that runs what it reads.

`script.parse` reads a text, `shell.Shell` runs the tree of one against a `host.ShellHost`, which is
its way to the world: programs, files, signals. Whoever makes processes (`simctl.stepd.hosts`)
gives it one; checks of scenarios and sbatch read scripts without running them. Nothing here knows a
kernel or a disk: of simctl it imports the limits and the signals alone.

Code that only wants a line of shell run, with an input, and its status and outputs, calls
`simctl.stepd.shell_lines.run_line`.
"""

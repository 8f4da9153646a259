"""Choose the directive that a plugin is driven with: the one that most of its code runs for."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from simctl.api.reach import reach_of
from simctl.kernel.procs import Process
from simctl.testing.plugin_check.burst_buffer.cluster import Life, Setting, run_cluster
from simctl.testing.plugin_check.burst_buffer.directives import (
    Answer,
    Directive,
    probe_all,
    values_of,
)
from simctl.testing.plugin_check.burst_buffer.vocabulary import Vocabulary, vocabulary_of
from simctl.testing.plugin_check.canon import attributes
from simctl.testing.plugin_check.watched import script_of

_CANDIDATES: Final = 12
_EXTENSIONS: Final = 48
_ROUNDS: Final = 4
_VALUES: Final = 2
_UNTIL_S: Final = 3600.0
_NOT_FOUND: Final = 127 << 8
_OF_A_VALUE: Final = ("OSError", "FileNotFoundError", "NotADirectoryError", "IsADirectoryError")
"""What a plugin raises where the file that a directive names is not as it should be."""

_FOLDERS: Final = ("/tmp", "/shared", "/shared/tmp", "/scratch", "/var/spool", "/home/alice")
"""Where plugins keep files of jobs."""

_SIGNS: Final = frozenset({"bb_state", "plugin_log", "plugin_error"})


@attrs.frozen(kw_only=True)
class Chosen:
    """What jobs ask a plugin with, in what surroundings, and what one such job's life was."""

    directive: Directive
    setting: Setting
    life: Life
    acts: bool
    """Whether the plugin did anything for it beyond looking at the request."""

    vocabulary: Vocabulary


@attrs.frozen(kw_only=True)
class NotDriven:
    """Why no job could be made to use a plugin."""

    tried: int
    refusal: str
    """How job_validate refused one, if it did."""

    raised: tuple[Answer, ...] = ()
    """Candidates of its own for which job_validate raised."""


def choose(
    kind: type[Any], setting: Setting, given: tuple[Directive, ...] = ()
) -> Chosen | NotDriven:
    """Find the directive that makes most of the plugin run."""
    vocabulary = vocabulary_of(kind)
    search = probe_all(kind, setting, vocabulary, given)
    plain = _life(kind, Directive(("# nothing",)), setting, vocabulary)
    best = plain if plain.acts else None
    shapes: set[frozenset[tuple[str, int]]] = set()
    tried = 0
    verbs = vocabulary.verbs
    own = [each for each in search.taken if not _has(each.directive, verbs)]
    for answer in own or search.taken:
        if tried >= _CANDIDATES:
            break
        if answer.lines in shapes and answer.directive not in given and tried > _CANDIDATES // 2:
            continue
        shapes.add(answer.lines)
        tried += 1
        found = _life(kind, answer.directive, setting, vocabulary)
        # What ran in job_validate alone has led to nothing.
        led = found.life.lines - plain.life.lines - answer.lines
        if led and found.acts and (best is None or _worth(found) > _worth(best)):
            best = found
    if best is None:
        raised = tuple(each for each in search.raised if each.lines - search.plain.lines)
        refusal = next((each.said for each in search.refused if each.said), "")
        return NotDriven(tried=len(search.taken), refusal=refusal, raised=raised)
    return _extended(kind, best, [each.directive for each in search.taken])


def _extended(kind: type[Any], best: Chosen, taken: list[Directive]) -> Chosen:
    """Add words that make more of the plugin run."""
    left = _EXTENSIONS
    if not best.directive.words or best.directive.lines == ("# nothing",):
        return best
    accepted = set(taken)
    for word in _keys(best):
        for value in values_of(word, ())[:_VALUES]:
            more = best.directive.extended(f"{word}={value}")
            if more not in accepted:
                continue
            if left <= 0:
                return best
            left -= 1
            found = _life(kind, more, best.setting, best.vocabulary)
            if _worth(found) > _worth(best):
                best = found
                accepted |= {each.extended(f"{word}={value}") for each in taken}
                break
    return best


def _has(directive: Directive, words: frozenset[str]) -> bool:
    return any(word.partition("=")[0] in words for word in directive.words)


def _keys(best: Chosen) -> Iterator[str]:
    there = {word.partition("=")[0] for word in best.directive.words} | best.vocabulary.verbs
    for word in best.vocabulary.words:
        if word not in there and word.islower() and not word.startswith("_"):
            yield word


def _life(kind: type[Any], directive: Directive, setting: Setting, known: Vocabulary) -> Chosen:
    """Let one job live with a directive, and describe the programs that were not there."""
    for _ in range(_ROUNDS):
        listener = _Acts()
        life = one_life(kind, directive, setting, known.files, observer=listener)
        missing = {
            script_of(event)[0]: {"runs": "5s"}
            for event in life.events
            if event.kind == "script" and event.phase == "enter" and _lacked(life, event.seq)
        }
        missing = {path: how for path, how in missing.items() if path not in setting.programs}
        if not missing:
            break
        setting = attrs.evolve(setting, programs={**setting.programs, **missing})
    return Chosen(
        directive=directive,
        setting=setting,
        life=life,
        acts=listener.acts or _acts(life),
        vocabulary=known,
    )


def one_life(
    kind: type[Any],
    directive: Directive,
    setting: Setting,
    files: frozenset[str] = frozenset(),
    model: str = "guide",
    observer: Any = None,
) -> Life:
    """Run a cluster with one job."""
    option = f"--bb='{directive.option}' " if directive.option else ""
    timeline = [{"at": "0s", "as": "alice", "run": f"sbatch {option}job.sh"}]
    text = setting.scenario(timeline, {"job.sh": directive.script("srun ./app")}, model=model)
    return run_cluster(kind, text, name="one job", until_s=_UNTIL_S, files=files, observer=observer)


def _lacked(life: Life, entered: int) -> bool:
    return any(
        event.enter == entered and event.rc == _NOT_FOUND
        for event in life.events
        if event.kind == "script"
    )


class _Acts:
    """Looks whether calls about a job change anything that can be seen."""

    def __init__(self) -> None:
        self.acts = False

    def before(self, *call: Any) -> Any:
        point, _, who, instance, values = call
        if self.acts:
            return None
        about_a_job = point is not None and point.name.startswith("bb_p_job_") and values
        if not about_a_job or point.name.startswith("bb_p_job_validate"):
            return None
        return self._seen(who, instance, values[0])

    def after(self, before: Any, *outcome: Any) -> None:
        _, who, instance, values, *_ = outcome
        self.acts = self.acts or before != self._seen(who, instance, values[0])

    @staticmethod
    def _seen(who: Process, instance: Any, subject: Any) -> tuple[Any, ...]:
        disk, host = reach_of(who).disk, who.host.name
        folders = [path for path in _FOLDERS if disk.is_directory(path, host)]
        return (
            [disk.names(host, path) for path in folders],
            attributes(instance),
            dict(getattr(subject, "env_sup", {})),
            getattr(subject, "burst_buffer", ""),
        )


def _acts(life: Life) -> bool:
    """Return whether a plugin has done something for a job that did not ask for it."""
    return any(
        event.name in _SIGNS
        or event.kind == "script"
        or (event.name == "job_state" and "CONFIGURING" in str(event.args))
        or (event.name == "bb_p_job_test_stage_in" and event.rc in (0, -1))
        for event in life.events
    )


def _worth(chosen: Chosen) -> tuple[int, int]:
    """Return by what lives are compared: faults of the values at hand, then lines that ran."""
    wrong = sum(each.problem.startswith(_OF_A_VALUE) for each in chosen.life.result.complaints)
    return -wrong, len(chosen.life.lines)


__all__ = ["Chosen", "NotDriven", "choose", "one_life"]

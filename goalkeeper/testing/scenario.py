"""Readable text scenarios over `step()`: commands, and below each what the machine said to it.

Knows nothing of pi, files or clocks; tests/scenarios/*.txt are written in this language.

A line that begins with "> " is a command; the indented lines below it are the machine's answer: the phase, then each
effect in order. Blank lines and comments ("#") are kept. `rewrite` returns the same text with the answers as they are.

    > set "all tests pass" max-runs=2     also max-minutes= max-cost= checks="a;b" terms=tool proof= run-timeout= tree=
    > resume [max-runs=3 max-minutes= max-cost= evaluator=pi model=m]      > clear      > interrupt
    > sent [effect=1]                     > refused "why" [effect=1]
    > run began                           > run ended [aborted] [error=text digest=d cost=0.1|unknown]
    > terms tool [proof="pytest -q" goal=g1]          > checks passed [goal=g1 effect=2]
    > judged not_met "why" [evidence=e1,e2 tree=t cost=0.1 goal=g1 effect=2]      > judged failed timeout "why"
    > compacted       > timer compaction|run_timeout [goal=g1 effect=2]       > worker lost "detail"    > asked "what?"
    > killed                              the controller dies: only what is saved is left
    > restored not_sent|interrupted|finished [max-runs=3 digest=d cost=0.1]
    > tick 31m                            awake time         > sleep 8h     a closed lid
    > loop "prompt"                       a loop runs beside the goal
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final, get_args

from goalkeeper.core import effects as do
from goalkeeper.core import events as ev
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.machine import IllegalCommand, step
from goalkeeper.core.records import Record
from goalkeeper.core.state import GoalState, LoopState, SessionState
from goalkeeper.core.verdict import CitedEntry, EvaluatorFailure, FailureKind, Judgement, RuleFinding, Terms, Verdict
from goalkeeper.testing.fake_clock import FakeClock

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_DECIDED: Final = (do.SendMessage, do.RunChecks, do.RequestVerdict)

Options = dict[str, str]


class Scenario:
    """One session, one machine, and a memory of what was asked for last.

    Attributes:
        state: the machine's state.
        events: the events so far, in order.
    """

    def __init__(self) -> None:
        self.state = SessionState()
        self.events: list[ev.Event] = []
        self._clock = FakeClock(at=1_800_000_000_000)
        self._goals = 0
        self._leaves = 0
        self._asked: dict[type[Any], int] = {}
        self._timers: dict[str, do.StartTimer] = {}

    def run(self, text: str) -> str:
        """Carry out one command, without its "> ", and return the answer, one indented line each.

        Raises:
            ValueError: the command is not in the language.
        """
        words = shlex.split(text)
        plain = [word for word in words[1:] if not _is_option(word)]
        options = dict(word.split("=", 1) for word in words[1:] if _is_option(word))
        act = _COMMANDS.get(words[0])
        if act is None:
            raise ValueError(f"no such command: {words[0]}")
        event = act(self, plain, options)
        if options:
            raise ValueError(f"options that {words[0]} does not take: {', '.join(options)}")
        return "\n".join("  " + line for line in self._answer(event))

    def _answer(self, event: ev.Event | None) -> list[str]:
        done: tuple[do.Effect, ...] = ()
        if event is not None:
            self.events.append(event)
            try:
                transition = step(self.state, event)
            except IllegalCommand as error:
                return [f"illegal: {error.message} {error.hint}".rstrip()]
            self.state, done = transition.state, transition.effects
        for effect in done:
            if isinstance(effect, _DECIDED):
                self._asked[type(effect)] = effect.id
            elif isinstance(effect, do.StartTimer):
                self._timers[effect.name] = effect
        return [_phase_line(self.state), *(_effect_line(effect) for effect in done)]

    # ---- commands ---------------------------------------------------------------------------------------------

    def _now(self) -> dict[str, Any]:
        return {"at": self._clock.at, "awake": self._clock.awake}

    def _new_leaf(self) -> str:
        self._leaves += 1
        return f"e{self._leaves}"

    def _goal(self, options: Options) -> str:
        return options.pop("goal", self.state.goal.id if self.state.goal else f"g{self._goals}")

    def _effect(self, options: Options, kind: type[Any]) -> int:
        return int(options.pop("effect", self._asked.get(kind, 0)))

    def set_goal(self, plain: list[str], options: Options) -> ev.Event:
        """`set CONDITION`: a goal whose id is g1, g2, ..."""
        self._goals += 1
        given = _given(options)
        default = Limits()
        timeout = options.pop("run-timeout", None)
        return ev.GoalSet(
            goal=f"g{self._goals}",
            condition=plain[0],
            leaf=self._new_leaf(),
            limits=Limits(
                given["max_runs"] or default.max_runs,
                given["max_seconds"] or default.max_seconds,
                given["max_cost"],
            ),
            terms=_terms(options.pop("terms"), options) if "terms" in options else None,
            checks=_listed(options.pop("checks", ""), ";"),
            evaluator=given["evaluator"] or "litellm",
            model=given["model"],
            run_timeout=None if timeout is None else float(timeout),
            tree=options.pop("tree", None),
            **self._now(),
        )

    def resume(self, plain: list[str], options: Options) -> ev.Event:
        """`resume`."""
        return ev.ResumeRequested(leaf=self._new_leaf(), **_given(options), **self._now())

    def clear(self, plain: list[str], options: Options) -> ev.Event:
        """`clear`."""
        return ev.ClearRequested(**self._now())

    def interrupt(self, plain: list[str], options: Options) -> ev.Event:
        """`interrupt`."""
        return ev.Interrupted(**self._now())

    def sent(self, plain: list[str], options: Options) -> ev.Event:
        """`sent`: the worker took the message."""
        return ev.MessageSent(effect=self._effect(options, do.SendMessage), **self._now())

    def refused(self, plain: list[str], options: Options) -> ev.Event:
        """`refused WHY`."""
        return ev.MessageRefused(effect=self._effect(options, do.SendMessage), reason=plain[0], **self._now())

    def worker_run(self, plain: list[str], options: Options) -> ev.Event:
        """`run began`, `run ended`: each run's tool results differ unless `digest=` says so."""
        if plain == ["began"]:
            return ev.RunBegan(**self._now())
        if plain not in (["ended"], ["ended", "aborted"]):
            raise ValueError("run began, or run ended [aborted]")
        return ev.RunEnded(
            aborted="aborted" in plain,
            error=options.pop("error", None),
            leaf=(leaf := self._new_leaf()),
            digest=options.pop("digest", f"results of {leaf}"),
            usage=_usage(options),
            **self._now(),
        )

    def terms(self, plain: list[str], options: Options) -> ev.Event:
        """`terms tool|answer`."""
        return ev.TermsSettled(goal=self._goal(options), terms=_terms(plain[0], options), **self._now())

    def checks(self, plain: list[str], options: Options) -> ev.Event:
        """`checks passed`; a check that failed is `judged not_met`."""
        return ev.ChecksPassed(
            effect=self._effect(options, do.RunChecks), goal=self._goal(options), leaf=self._new_leaf(), **self._now()
        )

    def judged(self, plain: list[str], options: Options) -> ev.Event:
        """`judged WORD REASON` or `judged failed KIND REASON`."""
        examined = do.RunChecks if self.state.phase == "checking" else do.RequestVerdict
        return ev.Judged(
            effect=self._effect(options, examined),
            goal=self._goal(options),
            judgement=_judgement(plain, _listed(options.pop("evidence", "")), _listed(options.pop("findings", ""))),
            usage=_usage(options),
            tree=options.pop("tree", None),
            leaf=self._new_leaf(),
            **self._now(),
        )

    def compacted(self, plain: list[str], options: Options) -> ev.Event:
        """`compacted`."""
        return ev.SessionCompacted(**self._now())

    def timer(self, plain: list[str], options: Options) -> ev.Event:
        """`timer NAME`: the timer that was started last under that name goes off."""
        started = self._timers[plain[0]]
        return ev.TimerFired(
            effect=int(options.pop("effect", started.id)),
            goal=options.pop("goal", started.goal),
            name=started.name,
            **self._now(),
        )

    def worker(self, plain: list[str], options: Options) -> ev.Event:
        """`worker lost DETAIL`."""
        return ev.WorkerLost(detail=plain[1], **self._now())

    def asked(self, plain: list[str], options: Options) -> ev.Event:
        """`asked QUESTION`."""
        return ev.QuestionUnanswered(question=plain[0], **self._now())

    def killed(self, plain: list[str], options: Options) -> None:
        """`killed`: what belongs to the process is gone."""
        self._clock.restart()
        self.state = replace(self.state, busy=False, awake=None)

    def restored(self, plain: list[str], options: Options) -> ev.Event:
        """`restored TRUTH`: what the session file says of the last message."""
        run: Any = plain[0]
        return ev.SessionRestored(
            run=run,
            leaf=(leaf := self._new_leaf()),
            digest=options.pop("digest", f"results of {leaf}"),
            usage=_usage(options),
            **_given(options),
            **self._now(),
        )

    def tick(self, plain: list[str], options: Options) -> ev.Event:
        """`tick DURATION`."""
        self._clock.work(_seconds(plain[0]))
        return ev.TimePassed(**self._now())

    def sleep(self, plain: list[str], options: Options) -> ev.Event:
        """`sleep DURATION`."""
        self._clock.sleep(_seconds(plain[0]))
        return ev.TimePassed(**self._now())

    def loop(self, plain: list[str], options: Options) -> None:
        """`loop PROMPT`."""
        self.state = replace(self.state, loop=LoopState(plain[0]))


_COMMANDS: Final[dict[str, Callable[[Scenario, list[str], Options], ev.Event | None]]] = {
    "set": Scenario.set_goal,
    "resume": Scenario.resume,
    "clear": Scenario.clear,
    "interrupt": Scenario.interrupt,
    "sent": Scenario.sent,
    "refused": Scenario.refused,
    "run": Scenario.worker_run,
    "terms": Scenario.terms,
    "checks": Scenario.checks,
    "judged": Scenario.judged,
    "compacted": Scenario.compacted,
    "timer": Scenario.timer,
    "worker": Scenario.worker,
    "asked": Scenario.asked,
    "killed": Scenario.killed,
    "restored": Scenario.restored,
    "tick": Scenario.tick,
    "sleep": Scenario.sleep,
    "loop": Scenario.loop,
}


def rewrite(text: str) -> str:
    """Return a scenario's text with each answer replaced by what the machine says now."""
    scenario = Scenario()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line.startswith("> "):
            lines += scenario.run(line[2:]).split("\n")
        elif line and not line.startswith("#"):
            raise ValueError(f"neither command, comment nor answer: {line}")
    return "\n".join(lines) + "\n"


# ---- reading ------------------------------------------------------------------------------------------------------


def _is_option(word: str) -> bool:
    name, mark, _ = word.partition("=")
    return bool(mark) and name.replace("-", "").isalpha()


def _listed(text: str, mark: str = ",") -> tuple[str, ...]:
    return tuple(part for part in text.split(mark) if part)


def _seconds(text: str) -> float:
    return float(text[:-1]) * _UNITS[text[-1]]


def _given(options: Options) -> dict[str, Any]:
    runs, minutes, cost = (options.pop(name, None) for name in ("max-runs", "max-minutes", "max-cost"))
    return {
        "max_runs": None if runs is None else int(runs),
        "max_seconds": None if minutes is None else float(minutes) * 60,
        "max_cost": None if cost is None else float(cost),
        "evaluator": options.pop("evaluator", None),
        "model": options.pop("model", None),
    }


def _usage(options: Options) -> Usage:
    cost = options.pop("cost", "0")
    return Usage(cost=None if cost == "unknown" else float(cost))


def _terms(basis: Any, options: Options) -> Terms:
    return Terms(basis, _listed(options.pop("proof", ""), ";"))


def _judgement(plain: list[str], evidence: tuple[str, ...], findings: tuple[str, ...]) -> Judgement:
    cited = tuple(CitedEntry(entry, "tool_result") for entry in evidence)
    found = tuple(RuleFinding(rule, "") for rule in findings)
    word: Any = plain[0]
    if word != "failed":
        return Verdict(word, plain[1], evidence=cited, findings=found)
    kind: Any = plain[1]
    if kind not in get_args(FailureKind):
        raise ValueError(f"no such kind of failure: {kind}")
    return EvaluatorFailure(kind, plain[2], evidence=cited, findings=found)


# ---- writing ------------------------------------------------------------------------------------------------------


def _phase_line(state: SessionState) -> str:
    words: list[str] = [state.phase]
    if state.goal:
        words += _goal_words(state.goal)
    words += ["busy"] if state.busy else []
    words += ["loop"] if state.loop else []
    return ", ".join(words)


def _goal_words(goal: GoalState) -> list[str]:
    words = [f"{goal.id} {goal.turns}/{goal.limits.max_runs} runs"]
    words += [f"{goal.seconds / 60:g} min"] if goal.seconds else []
    words += [f"{goal.unknowns} unknown"] if goal.unknowns else []
    words += [f"{goal.still} still"] if goal.still else []
    return words


def _effect_line(effect: do.Effect) -> str:
    match effect:
        case do.SendMessage():
            return f"send {effect.id} as {'steer' if effect.steer else 'prompt'}: {_shown(effect.text)}"
        case do.StartTimer():
            return f"start timer {effect.id} {effect.name} {effect.goal}: {effect.seconds:g} s"
        case do.RunChecks():
            return f"run checks {effect.id} {effect.goal}"
        case do.RequestVerdict():
            return f"ask evaluator {effect.id} {effect.goal}{' with tree' if effect.want_tree else ''}"
        case do.SettleTerms():
            return f"settle terms {effect.goal}: {_shown(effect.condition)}"
        case do.Announce():
            return _record_line(effect.record)
        case _:
            return {do.AbortRun: "abort run", do.CancelEvaluation: "cancel evaluation"}.get(
                type(effect), "cancel timers"
            )


def _record_line(record: Record) -> str:
    words = [f"say {record.event}"]
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name not in ("at", "event") and value not in (None, "", (), False, Usage()):
            words.append(f"{field.name}={_shown(value)}")
    return " ".join(words)


def _shown(value: Any) -> str:
    match value:
        case Limits():
            cost = "" if value.max_cost is None else f"/${value.max_cost:g}"
            return f"{value.max_runs}/{value.max_seconds / 60:g}min{cost}"
        case Usage():
            return "$?" if value.cost is None else f"${value.cost:g}"
        case Terms():
            return ":".join([value.basis, *value.proofs])
        case CitedEntry():
            return value.id
        case RuleFinding():
            return value.rule
        case tuple():
            return "[" + ",".join(_shown(part) for part in value) + "]"
        case str() if not value.replace("_", "").isalnum():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)

"""What holds whatever a host, a worker, an evaluator, a user and a crash do, in any order.

The host below is a model of a real one. It carries out orders to the worker one after another, sends no message that
the goal has stopped waiting for, and hands on what the worker says in the order in which it was said; everything else
(answers of checks and evaluator, timers, deaths) comes early, late, twice or never. The session log is the truth that
a restart is told about.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from goalkeeper.core import effects as do
from goalkeeper.core import events as ev
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.machine import IllegalCommand, Transition, step
from goalkeeper.core.state import GoalState, LoopState, SessionState
from goalkeeper.core.verdict import EvaluatorFailure, Terms, Verdict
from goalkeeper.testing.fake_clock import FakeClock

Budget = tuple[str, int]
"""A goal's id and how often its budget was granted."""

RESULTS = (ev.MessageSent, ev.MessageRefused, ev.ChecksPassed, ev.Judged)
USER = (ev.GoalSet, ev.ResumeRequested, ev.ClearRequested)
WORK = (do.SendMessage, do.RunChecks, do.RequestVerdict)

judgements = st.sampled_from(
    [
        *[Verdict("not_met", "1 failed"), Verdict("not_met", "2 failed"), Verdict("unknown", "no check")] * 2,
        Verdict("met", "5 passed"),
        EvaluatorFailure("timeout", "no answer in 60 s"),
    ]
)
usages = st.sampled_from([Usage(), Usage(), Usage(cost=0.2), Usage(cost=None)])
digests = st.sampled_from(["", "d1", "d2", "d3"])
misfortune = st.sampled_from([False, False, False, True])
"""Most of the time what can go wrong does not: else no goal would get far."""

trees = st.sampled_from([None, "T0", "T1"])
limits = st.builds(
    Limits,
    max_runs=st.integers(1, 6),
    max_seconds=st.sampled_from([60.0, 1800.0]),
    max_cost=st.sampled_from([None, None, 0.5]),
)


@dataclass
class Run:
    """A run in the worker."""

    effects: list[int] = field(default_factory=list)
    reported: bool = False


@dataclass
class LogEntry:
    """An entry of the session file: a user message, or how the run before it ended."""

    id: str
    kind: str
    text: str = ""
    run: Run | None = None


class Host(RuleBasedStateMachine):
    """A host, its worker, its evaluator, its user, and its crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.state = SessionState()
        self.clock = FakeClock()
        self.log: list[LogEntry] = []
        self.run: Run | None = None
        self.said: deque[Callable[[], ev.Event]] = deque()  # by the worker, not yet handed on
        self.orders: deque[tuple[do.SendMessage | do.AbortRun, str | None]] = deque()
        self.questions: list[do.RunChecks | do.RequestVerdict | do.SettleTerms] = []
        self.timers: list[do.StartTimer] = []
        self.old_results: list[ev.Event] = []
        self.goals = 0
        self.budget: Budget = ("", 0)
        self.budget_of: dict[int, Budget] = {}
        self.completed: Counter[Budget] = Counter()
        self.effect_ids: set[int] = set()

    # ---- the machine and what must hold -----------------------------------------------------------------------

    def now(self) -> dict[str, Any]:
        return {"at": self.clock.at, "awake": self.clock.awake}

    @property
    def leaf(self) -> str | None:
        return self.log[-1].id if self.log else None

    def apply(self, event: ev.Event) -> None:
        before = self.state
        try:
            transition = step(before, event)
        except IllegalCommand:
            assert self.state is before
            return
        if isinstance(event, ev.GoalSet):
            self.budget = (event.goal, 0)
        elif isinstance(event, ev.ResumeRequested):
            self.budget = (self.budget[0], self.budget[1] + 1)
        self.state = transition.state
        self.check_effects(before, event, transition)
        self.check_goal(before, event, transition.state)
        for effect in transition.effects:
            self.take(effect)

    def check_effects(self, before: SessionState, event: ev.Event, transition: Transition) -> None:
        goal = transition.state.goal
        work = [effect for effect in transition.effects if isinstance(effect, WORK)]
        assert len(work) <= 1, "one thing is outstanding at a time"
        for effect in work:
            assert goal and not goal.pause and goal.awaited == effect.id
            assert effect.id not in self.effect_ids, "an effect id is never used twice"
            self.effect_ids.add(effect.id)
        if work and not isinstance(event, USER):
            assert before.goal and not before.goal.pause, "without a goal, or paused, only a user starts work"
        if goal:
            waits = not goal.pause and goal.stage != "running"
            assert (goal.awaited is not None) == waits
        if any(isinstance(effect, do.SendMessage) for effect in work):
            assert goal
            self.check_budget(goal)

    def check_budget(self, goal: GoalState) -> None:
        assert goal.turns < goal.limits.max_runs
        assert goal.seconds < goal.limits.max_seconds
        cost = goal.usage.cost
        assert goal.limits.max_cost is None or (cost is not None and cost < goal.limits.max_cost)

    def check_goal(self, before: SessionState, event: ev.Event, after: SessionState) -> None:
        old, goal = before.goal, after.goal
        if isinstance(event, ev.ClearRequested):
            assert goal is None and after.loop is None
        elif old and not goal:
            assert isinstance(event, ev.Judged) and isinstance(event.judgement, Verdict)
            assert event.judgement.verdict == "met" and not old.pause
            assert (event.goal, event.effect) == (old.id, old.awaited)
        if (
            isinstance(event, ev.Judged)
            and old
            and not old.pause
            and (event.goal, event.effect) == (old.id, old.awaited)
        ):
            met = isinstance(event.judgement, Verdict) and event.judgement.verdict == "met"
            assert met == (goal is None), "a met stands, also on the last run that the budget allows"
        if not goal:
            return
        assert goal.unknowns <= 2 and goal.still <= 3
        assert goal.turns <= goal.limits.max_runs
        if isinstance(event, ev.GoalSet):
            return
        assert old and (goal.id, goal.condition) == (old.id, old.condition)
        if goal.pause:
            assert after.loop is None
        if old.pause and not isinstance(event, ev.ResumeRequested):
            # What was spent before the pause may become known after it, and so may the terms.
            known_late = {"terms": None, "evaluator_usage": Usage(), "worker_usage": Usage()}
            assert replace(goal, **known_late) == replace(old, **known_late)
        if not isinstance(event, ev.ResumeRequested):
            passed = 0.0 if old.pause or before.awake is None else event.awake - before.awake
            assert goal.seconds == old.seconds + passed
        late = isinstance(event, RESULTS) and event.effect != old.awaited
        if late or getattr(event, "goal", old.id) != old.id:
            assert goal == replace(old, seconds=goal.seconds), "what is late or foreign changes nothing"

    def check_count(self) -> None:
        if self.state.goal:
            assert self.state.goal.turns == self.completed[self.budget]

    def take(self, effect: do.Effect) -> None:
        if isinstance(effect, do.SendMessage):
            self.budget_of[effect.id] = self.budget
            assert self.state.goal and self.state.goal.sent
            self.orders.append((effect, self.state.goal.sent.after))
        elif isinstance(effect, do.AbortRun):
            self.orders.append((effect, None))
        elif isinstance(effect, do.RunChecks | do.RequestVerdict | do.SettleTerms):
            self.questions.append(effect)
        elif isinstance(effect, do.StartTimer):
            self.timers.append(effect)
        # Cancelled questions and timers stay: their answers may be on the way already.

    # ---- the worker -------------------------------------------------------------------------------------------

    def write(self, kind: str, text: str = "", run: Run | None = None) -> None:
        self.log.append(LogEntry(f"e{len(self.log) + 1}", kind, text, run))

    def behind(self, after: str | None) -> list[LogEntry]:
        ids = [entry.id for entry in self.log]
        return self.log[ids.index(after) + 1 :] if after in ids else list(self.log)

    def end_run(self, kind: str, **ended: Any) -> None:
        run, self.run = self.run, None
        assert run
        self.write(kind, run=run)
        leaf = self.leaf

        def event() -> ev.Event:
            run.reported = True
            if kind == "ok" and self.state.goal and not self.state.goal.pause and self.of_this_budget(run):
                self.completed[self.budget] += 1
            return ev.RunEnded(leaf=leaf, **ended, **self.now())

        self.said.append(event)

    def of_this_budget(self, run: Run) -> bool:
        return any(self.budget_of[effect] == self.budget for effect in run.effects)

    @rule(refuse=misfortune)
    @precondition(lambda self: self.orders)
    def the_worker_takes_an_order(self, refuse: bool) -> None:
        order, after = self.orders.popleft()
        if isinstance(order, do.AbortRun):
            if self.run:
                self.end_run("aborted", aborted=True)
            return
        goal = self.state.goal
        if goal is None or goal.awaited != order.id:
            return  # the goal was paused, cleared or replaced while its message was waiting
        if refuse:
            self.old_results.append(ev.MessageRefused(effect=order.id, reason="busy", **self.now()))
            self.said.append(lambda: ev.MessageRefused(effect=order.id, reason="busy", **self.now()))
            return
        again = [entry for entry in self.behind(after) if entry.kind == "user" and entry.text == order.text]
        assert not again, "the session holds this message already"
        begins = self.run is None
        self.run = self.run or Run()
        self.run.effects.append(order.id)
        self.write("user", order.text)
        self.old_results.append(ev.MessageSent(effect=order.id, **self.now()))
        self.said.append(lambda: ev.MessageSent(effect=order.id, **self.now()))
        if begins:
            self.said.append(lambda: ev.RunBegan(**self.now()))

    @rule(digest=digests, usage=usages)
    @precondition(lambda self: self.run)
    def a_run_ends(self, digest: str, usage: Usage) -> None:
        self.end_run("ok", digest=digest, usage=usage)

    @rule(indeed=misfortune)
    @precondition(lambda self: self.run)
    def a_run_fails(self, indeed: bool) -> None:
        if not indeed or self.state.goal is None:
            return
        self.end_run("error", error="401: bad key")

    @rule(compacted=st.booleans())
    @precondition(lambda self: self.run is None and self.state.goal)
    def a_loop_or_a_person_starts_a_run(self, compacted: bool) -> None:
        if compacted:
            self.said.append(lambda: ev.SessionCompacted(**self.now()))
        self.run = Run()
        self.write("user", "something else")
        self.said.append(lambda: ev.RunBegan(**self.now()))

    @rule()
    @precondition(lambda self: self.said)
    def the_host_hears_the_worker(self) -> None:
        self.apply(self.said.popleft()())
        self.check_count()

    @rule()
    def the_host_catches_up(self) -> None:
        while self.orders or self.said:
            if self.orders:
                self.the_worker_takes_an_order(False)
            while self.said:
                self.the_host_hears_the_worker()

    @rule(indeed=misfortune)
    def the_worker_dies(self, indeed: bool) -> None:
        if not indeed or self.state.goal is None:
            return
        self.run = None
        self.write("cut")
        self.said.clear()
        self.apply(ev.WorkerLost(detail="signal 9", **self.now()))
        assert not self.state.busy

    @rule(indeed=misfortune)
    def a_question_stays_unanswered(self, indeed: bool) -> None:
        if not indeed or self.state.goal is None:
            return
        self.apply(ev.QuestionUnanswered(question="Overwrite?", **self.now()))

    # ---- checks, evaluator, timers, time ----------------------------------------------------------------------

    @rule(data=st.data(), judgement=judgements, usage=usages, tree=trees, passed=st.booleans())
    @precondition(lambda self: self.questions)
    def a_question_is_answered(
        self, data: st.DataObject, judgement: Any, usage: Usage, tree: str | None, passed: bool
    ) -> None:
        asked = self.questions.pop(data.draw(st.integers(0, len(self.questions) - 1)))
        self.answer(asked, judgement, usage, tree, passed)

    def answer(self, asked: Any, judgement: Any, usage: Usage, tree: str | None, passed: bool) -> None:
        event: ev.Event
        if isinstance(asked, do.SettleTerms):
            event = ev.TermsSettled(goal=asked.goal, terms=Terms("tool"), usage=usage, **self.now())
        elif isinstance(asked, do.RunChecks) and passed:
            event = ev.ChecksPassed(effect=asked.id, goal=asked.goal, leaf=self.leaf, **self.now())
        else:
            event = ev.Judged(
                effect=asked.id,
                goal=asked.goal,
                judgement=judgement,
                usage=usage,
                tree=tree,
                leaf=self.leaf,
                **self.now(),
            )
        self.old_results.append(event)
        self.apply(event)
        self.check_count()

    @rule(
        turns=st.lists(st.tuples(digests, judgements, usages, trees), max_size=4),
        steady=st.booleans(),
        rest=st.sampled_from(["sent", "ended unheard", "ended"]),
        then=st.sampled_from(["nothing", "late results", "a crash"]),
    )
    @precondition(lambda self: self.state.goal and not self.state.goal.pause)
    def some_turns_go_by(
        self, turns: list[tuple[str, Any, Usage, str | None]], steady: bool, rest: str, then: str
    ) -> None:
        for digest, judgement, usage, tree in [turns[0]] * len(turns) if steady and turns else turns:
            self.a_run_goes_by(digest, usage)
            while goal := self.examined():
                asked = next(each for each in self.questions if getattr(each, "id", None) == goal.awaited)
                self.questions.remove(asked)
                self.answer(asked, judgement, usage, tree, True)
        if rest == "ended":
            self.a_run_goes_by("d4", Usage())
        else:
            self.the_host_catches_up()
            if self.run and rest == "ended unheard":
                self.a_run_ends("d4", Usage())
        if then == "a crash":
            self.the_host_crashes_and_comes_back(True, False, None)
        elif then == "late results":
            for event in self.old_results[-6:]:
                self.repeat(event)

    def a_run_goes_by(self, digest: str, usage: Usage) -> None:
        self.the_host_catches_up()
        if self.run:
            self.a_run_ends(digest, usage)
        self.the_host_catches_up()

    def examined(self) -> GoalState | None:
        goal = self.state.goal
        return goal if goal and not goal.pause and goal.stage in ("checking", "evaluating") else None

    @rule(data=st.data())
    @precondition(lambda self: self.old_results)
    def a_result_comes_once_more(self, data: st.DataObject) -> None:
        self.repeat(data.draw(st.sampled_from(self.old_results[-8:])))

    def repeat(self, old: ev.Event) -> None:
        event = replace(old, **self.now())
        waits_for = self.state.goal.awaited if self.state.goal else None
        if isinstance(event, ev.MessageSent | ev.MessageRefused) and event.effect == waits_for:
            return  # that is the first delivery, and the worker's words keep their order
        self.apply(event)
        self.check_count()

    @rule(data=st.data())
    @precondition(lambda self: self.timers)
    def a_timer_goes_off(self, data: st.DataObject) -> None:
        timer = data.draw(st.sampled_from(self.timers))
        if timer.name == "compaction" and (self.orders or self.said):
            return  # two seconds are longer than any way through the host
        self.apply(ev.TimerFired(effect=timer.id, goal=timer.goal, name=timer.name, **self.now()))

    @precondition(lambda self: self.state.goal)
    @rule(awake=st.sampled_from([1.0, 20.0, 600.0]), asleep=st.sampled_from([0.0, 28_800.0]), loop=st.booleans())
    def time_passes(self, awake: float, asleep: float, loop: bool) -> None:
        self.clock.work(awake)
        self.clock.sleep(asleep)
        self.apply(ev.TimePassed(**self.now()))
        if loop and self.state.phase != "paused":
            self.state = replace(self.state, loop=LoopState("look after the build"))

    # ---- the user ---------------------------------------------------------------------------------------------

    @initialize(limits=limits, foreign=misfortune)
    def a_first_goal_is_set(self, limits: Limits, foreign: bool) -> None:
        if foreign:
            self.a_loop_or_a_person_starts_a_run(False)
            self.the_host_catches_up()
        self.a_goal_is_set(True, limits, False, True, False)

    @rule(anew=misfortune, limits=limits, checks=st.booleans(), settled=st.booleans(), timeout=st.booleans())
    def a_goal_is_set(self, anew: bool, limits: Limits, checks: bool, settled: bool, timeout: bool) -> None:
        if self.state.goal and not anew:
            return
        self.goals += 1
        self.apply(
            ev.GoalSet(
                goal=f"g{self.goals}",
                condition="all tests pass",
                leaf=self.leaf,
                limits=limits,
                terms=Terms("tool") if settled else None,
                checks=("make test",) if checks else (),
                run_timeout=300.0 if timeout else None,
                tree="T0",
                **self.now(),
            )
        )
        assert self.state.phase == "sending"

    @precondition(lambda self: self.state.goal)
    @rule(runs=st.sampled_from([None, 2]), cost=st.sampled_from([None, 99.0]))
    def the_goal_is_resumed(self, runs: int | None, cost: float | None) -> None:
        self.apply(ev.ResumeRequested(leaf=self.leaf, max_runs=runs, max_cost=cost, **self.now()))

    @rule(indeed=misfortune)
    def the_goal_is_cleared(self, indeed: bool) -> None:
        if not indeed or self.state.goal is None:
            return
        self.apply(ev.ClearRequested(**self.now()))

    @rule(indeed=misfortune)
    def the_user_interrupts(self, indeed: bool) -> None:
        if not indeed or self.state.goal is None:
            return
        self.apply(ev.Interrupted(**self.now()))
        assert self.state.phase in ("none", "paused")

    # ---- crashes ----------------------------------------------------------------------------------------------

    @rule(indeed=misfortune, unsaved=st.booleans(), more=st.sampled_from([None, 9]))
    def the_host_crashes_and_comes_back(self, indeed: bool, unsaved: bool, more: int | None) -> None:
        if not indeed or self.state.goal is None:
            return
        if self.run:
            self.run = None
            self.write("cut")
        for gone in (self.said, self.orders, self.questions, self.timers):
            gone.clear()
        self.clock.restart()
        goal = self.state.goal
        if goal and goal.stage == "running" and not goal.pause and unsaved and goal.sent:
            # Whether the worker has the message is not worth a write: the session file tells.
            goal = replace(goal, stage="sending", awaited=goal.sent.effect)
        self.state = replace(self.state, goal=goal, busy=False, awake=None)
        if goal and not goal.pause:
            self.restore(goal, more)

    def restore(self, goal: GoalState, more: int | None) -> None:
        truth = self.truth(goal)
        for entry in self.log:
            run = entry.run
            if run and entry.kind == "ok" and not run.reported and self.of_this_budget(run):
                run.reported = True
                self.completed[self.budget] += 1
        self.apply(ev.SessionRestored(run=truth, leaf=self.leaf, max_runs=more, **self.now()))
        stored, sent = goal.sent, self.state.goal and self.state.goal.sent
        if truth == "not_sent" and stored and sent:
            assert sent.text == stored.text, "a message that was stored but never sent is sent as it is"
        self.check_count()

    def truth(self, goal: GoalState) -> Any:
        assert goal.sent
        entries = self.behind(goal.sent.after)
        found = [i for i, entry in enumerate(entries) if entry.kind == "user" and entry.text == goal.sent.text]
        if not found:
            return "not_sent"
        ends = [entry.kind for entry in entries[found[-1] :] if entry.kind != "user"]
        return "finished" if ends[0] == "ok" else "interrupted"


Host.TestCase.settings = settings(
    max_examples=250,
    stateful_step_count=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestAnyHost = Host.TestCase

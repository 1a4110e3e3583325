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
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from goalkeeper.core import effects as do
from goalkeeper.core import events as ev
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.machine import IllegalCommand, Transition, step
from goalkeeper.core.state import GoalState, LoopState, SessionState
from goalkeeper.core.verdict import EvaluatorFailure, Terms, Verdict
from goalkeeper.testing.fake_clock import FakeClock

Budget = tuple[str, int]
"""A goal's id and how often its budget was granted."""

USER = (ev.GoalSet, ev.ResumeRequested, ev.ClearRequested)
WORK = (do.SendMessage, do.RunChecks, do.RequestVerdict)

judgements = st.one_of(
    st.sampled_from([Verdict("not_met", "1 failed"), Verdict("not_met", "2 failed"), Verdict("unknown", "no check")]),
    st.just(Verdict("met", "5 passed")),
    st.just(EvaluatorFailure("timeout", "no answer in 60 s")),
)
usages = st.sampled_from([Usage(), Usage(), Usage(cost=0.2), Usage(cost=None)])
trees = st.sampled_from([None, "T0", "T1"])
limits = st.builds(
    Limits,
    max_runs=st.integers(1, 4),
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
        if isinstance(event, ev.Judged) and (event.goal, event.effect) != (old.id, old.awaited):
            assert goal == replace(old, seconds=goal.seconds)

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

    @rule(refuse=st.sampled_from([False, False, False, True]))
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

    @rule(digest=st.sampled_from(["", "d1", "d2", "d3"]), usage=usages)
    @precondition(lambda self: self.run)
    def a_run_ends(self, digest: str, usage: Usage) -> None:
        self.end_run("ok", digest=digest, usage=usage)

    @rule()
    @precondition(lambda self: self.run)
    def a_run_fails(self) -> None:
        self.end_run("error", error="401: bad key")

    @rule()
    @precondition(lambda self: self.run is None)
    def a_loop_or_a_person_starts_a_run(self) -> None:
        self.run = Run()
        self.write("user", "something else")
        self.said.append(lambda: ev.RunBegan(**self.now()))

    @rule()
    def pi_compacts(self) -> None:
        self.said.append(lambda: ev.SessionCompacted(**self.now()))

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

    @rule()
    def the_worker_dies(self) -> None:
        self.run = None
        self.write("cut")
        self.said.clear()
        self.apply(ev.WorkerLost(detail="signal 9", **self.now()))
        assert not self.state.busy

    @rule()
    def a_question_stays_unanswered(self) -> None:
        self.apply(ev.QuestionUnanswered(question="Overwrite?", **self.now()))

    # ---- checks, evaluator, timers, time ----------------------------------------------------------------------

    @rule(data=st.data(), judgement=judgements, usage=usages, tree=trees, passed=st.booleans())
    @precondition(lambda self: self.questions)
    def a_question_is_answered(
        self, data: st.DataObject, judgement: Any, usage: Usage, tree: str | None, passed: bool
    ) -> None:
        asked = self.questions.pop(data.draw(st.integers(0, len(self.questions) - 1)))
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

    @rule(data=st.data())
    @precondition(lambda self: self.old_results)
    def a_result_comes_once_more(self, data: st.DataObject) -> None:
        event = replace(data.draw(st.sampled_from(self.old_results)), **self.now())
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

    @rule(seconds=st.sampled_from([1.0, 20.0, 600.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.work(seconds)
        self.apply(ev.TimePassed(**self.now()))

    @rule(seconds=st.sampled_from([1.0, 28_800.0]))
    def the_lid_is_closed(self, seconds: float) -> None:
        self.clock.sleep(seconds)

    # ---- the user ---------------------------------------------------------------------------------------------

    @rule(limits=limits, checks=st.booleans(), settled=st.booleans(), timeout=st.booleans())
    def a_goal_is_set(self, limits: Limits, checks: bool, settled: bool, timeout: bool) -> None:
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

    @rule(runs=st.sampled_from([None, 2]), cost=st.sampled_from([None, 99.0]))
    def the_goal_is_resumed(self, runs: int | None, cost: float | None) -> None:
        self.apply(ev.ResumeRequested(leaf=self.leaf, max_runs=runs, max_cost=cost, **self.now()))

    @rule()
    def the_goal_is_cleared(self) -> None:
        self.apply(ev.ClearRequested(**self.now()))

    @rule()
    def the_user_interrupts(self) -> None:
        self.apply(ev.Interrupted(**self.now()))
        assert self.state.phase in ("none", "paused")

    @rule()
    def a_loop_runs(self) -> None:
        if self.state.phase != "paused":
            self.state = replace(self.state, loop=LoopState("look after the build"))

    # ---- crashes ----------------------------------------------------------------------------------------------

    @rule(unsaved=st.booleans(), more=st.sampled_from([None, 9]))
    def the_host_crashes_and_comes_back(self, unsaved: bool, more: int | None) -> None:
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
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestAnyHost = Host.TestCase

"""The rules for users' commands, a new controller, and the worker.

Knows nothing of processes, files, clocks or terminals. `core/machine.py` says which rule applies when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from goalkeeper.core import messages
from goalkeeper.core.effects import (
    AbortRun,
    CancelEvaluation,
    CancelTimers,
    Effect,
    SettleTerms,
    StartTimer,
)
from goalkeeper.core.events import (
    ClearRequested,
    GoalSet,
    Interrupted,
    MessageRefused,
    MessageSent,
    QuestionUnanswered,
    ResumeRequested,
    RunBegan,
    RunEnded,
    SessionCompacted,
    SessionRestored,
    TimerFired,
    WorkerLost,
)
from goalkeeper.core.records import (
    Cleared,
    GoalResumed,
    GoalWasSet,
    RunSettledRecord,
)
from goalkeeper.core.state import GoalState, SessionState
from goalkeeper.core.transition import (
    IllegalCommand,
    Transition,
    announce,
    current_goal,
    dropped,
    examine,
    pause,
    renewed,
    send,
    spent_budget,
)

COMPACTION_GRACE: Final = 2.0
"""Seconds after a compaction until an idle goal gets one continuation (spec, section 2)."""


def set_rule(state: SessionState, event: GoalSet) -> Transition:
    """Set a goal in place of whatever was there; its condition is sent at once."""
    old = state.goal
    goal = GoalState(
        id=event.goal,
        condition=event.condition,
        started_at=event.at,
        set_after=event.leaf,
        limits=event.limits,
        evaluator=event.evaluator,
        model=event.model,
        terms=event.terms,
        checks=event.checks,
        ignore=event.ignore,
        run_timeout=event.run_timeout,
        pi_args=event.pi_args,
        tree_at_start=event.tree,
        last_tree=event.tree,
    )
    record = GoalWasSet(
        at=event.at,
        goal=goal.id,
        condition=goal.condition,
        limits=goal.limits,
        evaluator=goal.evaluator,
        checks=goal.checks,
        replaced=old.condition if old else None,
    )
    before: tuple[Effect, ...] = (CancelEvaluation(), CancelTimers()) if old else ()
    sent = send(replace(state, leaf=event.leaf), goal, goal.condition, "condition", event.at)
    settle: tuple[Effect, ...] = () if goal.terms else (SettleTerms(goal.id, goal.condition),)
    return Transition(sent.state, before + announce(record) + sent.effects + settle)


def resume(state: SessionState, event: ResumeRequested) -> Transition:
    """Renew the budget of a paused goal and send its condition again."""
    goal = current_goal(state)
    goal = replace(renewed(goal, event), turns=0, seconds=0.0, unknowns=0, still=0, pause=None)
    spent = spent_budget(goal)
    if spent:
        known = goal.usage.cost is not None
        hint = "Resume it with a larger --max-cost." if known else "Set the goal again without --max-cost."
        raise IllegalCommand(f"The goal can't go on: {spent[1]}.", hint)
    record = GoalResumed(at=event.at, goal=goal.id, condition=goal.condition, run=0, limits=goal.limits, fresh=True)
    sent = send(replace(state, leaf=event.leaf), goal, goal.condition, "condition", event.at)
    settle: tuple[Effect, ...] = () if goal.terms else (SettleTerms(goal.id, goal.condition),)
    return Transition(sent.state, announce(record) + sent.effects + settle)


def restore(state: SessionState, event: SessionRestored) -> Transition:
    """Take up an active goal whose controller died: nothing is counted twice, nothing is sent twice."""
    goal = current_goal(state)
    # A crash loses stamps, so what it left can be unknown, and have to be run again, through no fault of the worker's:
    # what counts in a row begins anew. What was used of the budget stays used.
    goal = replace(renewed(goal, event), awaited=None, unknowns=0, still=0)
    state = replace(state, goal=goal, busy=False, leaf=event.leaf)
    record = GoalResumed(
        at=event.at, goal=goal.id, condition=goal.condition, run=goal.turns, limits=goal.limits, fresh=False
    )
    effects = announce(record)
    if not goal.terms:
        effects += (SettleTerms(goal.id, goal.condition),)
    if goal.stage in ("checking", "evaluating"):
        after = examine(state, goal)
    elif event.run == "finished":
        ended = RunEnded(at=event.at, awake=event.awake, leaf=event.leaf, digest=event.digest, usage=event.usage)
        after = run_ended(replace(state, goal=replace(goal, stage="running")), ended)
    else:
        after = _taken_up(state, goal, event)
    return Transition(after.state, effects + after.effects)


def _taken_up(state: SessionState, goal: GoalState, event: SessionRestored) -> Transition:
    """Send what was never sent, or continue what was cut off; what that run cost is spent all the same."""
    if event.run == "interrupted":
        goal = replace(goal, worker_usage=goal.worker_usage.plus(event.usage))
        state = replace(state, goal=goal)
    if spent := spent_budget(goal):
        return pause(state, *spent, event.at)
    unsent = goal.sent.text if event.run == "not_sent" and goal.sent else None
    return send(state, goal, unsent or messages.continuation(goal.condition), "continue", event.at)


def clear(state: SessionState, event: ClearRequested) -> Transition:
    """Remove goal and loop and abort what is under way; with nothing set, say so and abort nothing."""
    goal, loop = state.goal, state.loop
    record = Cleared(
        at=event.at,
        goal=goal.id if goal else "",
        condition=goal.condition if goal else None,
        loop_stopped=loop is not None,
    )
    if not goal and not loop:
        return Transition(state, announce(record))
    effects: tuple[Effect, ...] = (CancelEvaluation(), CancelTimers())
    if state.busy or (goal and goal.stage == "sending" and not goal.pause):
        effects += (AbortRun(),)
    return Transition(replace(state, goal=None, loop=None), effects + announce(record))


def interrupt(state: SessionState, event: Interrupted) -> Transition:
    """Pause for Ctrl-C or SIGTERM."""
    return pause(state, "interrupted", "interrupted", event.at)


def message_sent(state: SessionState, event: MessageSent) -> Transition:
    """Note that the worker has the message; look again in a while if the run that it was to steer is over."""
    goal = current_goal(state)
    if goal.awaited != event.effect:
        return dropped(state, event)
    state = replace(state, goal=replace(goal, stage="running", awaited=None))
    return Transition(state) if state.busy else _look_again(state)


def message_refused(state: SessionState, event: MessageRefused) -> Transition:
    """Pause when pi does not take the message."""
    if current_goal(state).awaited != event.effect:
        return dropped(state, event)
    # No run begins with it. One that it was to steer is aborted with the pause.
    return pause(replace(state, busy=False), "not_sent", f"pi did not take the message: {event.reason}", event.at)


def late_refusal(state: SessionState, event: MessageRefused) -> Transition:
    """Note that the message of a goal that is paused or cleared by now begins no run: nobody waits for its end."""
    sent = state.goal.sent if state.goal else None
    # Of a goal that is gone, the last effect was its message.
    own = event.effect == (sent.effect if sent else state.next_id - 1)
    return dropped(replace(state, busy=state.busy and not own), event)


def run_began(state: SessionState, event: RunBegan) -> Transition:
    """Note that the worker works."""
    return Transition(replace(state, busy=True))


def foreign_run_ended(state: SessionState, event: RunEnded) -> Transition:
    """Note the end of a run that is not this goal's: of an aborted one, or of a person's."""
    return Transition(replace(state, busy=False, leaf=event.leaf))


def late_run_ended(state: SessionState, event: RunEnded) -> Transition:
    """Note the end of a paused goal's run; what it cost counts, the run does not."""
    goal = current_goal(state)
    goal = replace(goal, worker_usage=goal.worker_usage.plus(event.usage))
    return Transition(replace(state, goal=goal, busy=False, leaf=event.leaf))


def run_ended(state: SessionState, event: RunEnded) -> Transition:
    """Count a completed run, then have it examined; pause after an aborted or failed one."""
    goal = replace(current_goal(state), worker_usage=current_goal(state).worker_usage.plus(event.usage), awaited=None)
    completed = not event.aborted and event.error is None
    if completed:
        goal = replace(
            goal,
            turns=goal.turns + 1,
            results_changed=event.digest not in ("", goal.results_digest),
            results_digest=event.digest or goal.results_digest,  # talk does not make an old result new again
        )
    state = replace(state, goal=goal, busy=False, leaf=event.leaf)
    record = RunSettledRecord(
        at=event.at,
        goal=goal.id,
        run=goal.turns,
        max_runs=goal.limits.max_runs,
        aborted=event.aborted,
        error=event.error,
        usage=event.usage,
        seconds=goal.seconds,
    )
    if event.aborted:
        after = pause(state, "aborted", "the run was aborted", event.at)
    elif event.error is not None:
        after = pause(state, "run_failed", f"the run failed: {event.error}", event.at)
    else:
        after = examine(state, goal)
    return Transition(after.state, (CancelTimers(), *announce(record), *after.effects))


def worker_lost(state: SessionState, event: WorkerLost) -> Transition:
    """Pause when pi dies in the middle of the work."""
    return pause(
        replace(state, busy=False), "worker_exited", f"pi ended in the middle of the work: {event.detail}", event.at
    )


def idle_worker_lost(state: SessionState, event: WorkerLost) -> Transition:
    """Note that pi is gone."""
    return Transition(replace(state, busy=False))


def question(state: SessionState, event: QuestionUnanswered) -> Transition:
    """Pause with the question that nobody answered."""
    return pause(state, "question", f"pi asked, and nobody was there to answer: {event.question}", event.at)


def compacted(state: SessionState, event: SessionCompacted) -> Transition:
    """Look again in a while: pi may go on by itself or not."""
    return _look_again(state)


def _look_again(state: SessionState) -> Transition:
    effect = state.next_id
    timer = StartTimer(effect, current_goal(state).id, "compaction", COMPACTION_GRACE)
    return Transition(replace(state, next_id=effect + 1), (timer,))


def timer(state: SessionState, event: TimerFired) -> Transition:
    """Abort a run that takes too long, or continue a goal that is idle after a compaction."""
    goal = current_goal(state)
    if event.goal != goal.id:
        return dropped(state, event)
    if event.name == "run_timeout":
        if goal.stage not in ("sending", "running") or not goal.sent or goal.sent.effect != event.effect:
            return dropped(state, event)
        text = f"the run took longer than {goal.run_timeout or 0:g} s"
        return pause(replace(state, busy=True), "run_timeout", text, event.at)
    if goal.stage != "running" or state.busy:
        return Transition(state)
    if spent := spent_budget(goal):
        return pause(state, *spent, event.at)
    return send(state, goal, messages.continuation(goal.condition), "continue", event.at)

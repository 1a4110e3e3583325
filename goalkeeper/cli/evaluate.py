"""`goalkeeper evaluate`: one evaluation of a session file as it lies there; nothing is run and nothing is written.

Knows nothing of how the result is shown; see `evaluate_report.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from goalkeeper.cli.evaluate_report import Evaluation, print_evaluation
from goalkeeper.cli.exit_codes import code_of_evaluation
from goalkeeper.config import GoalConfig
from goalkeeper.core.limits import Usage
from goalkeeper.core.verdict import Basis, EvaluatorFailure, Stamp, Terms
from goalkeeper.errors import PeerError, PrerequisiteError, UsageError
from goalkeeper.evaluator.choose import open_evaluator
from goalkeeper.evaluator.llm_evaluator import LlmEvaluator
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.evidence.window import is_shown
from goalkeeper.pi.install import PiCommand, find_pi
from goalkeeper.pi.session_log import SessionHeader, SessionLog
from goalkeeper.pi.session_model import last_model
from goalkeeper.ports import ModelInfo
from goalkeeper.runtime.freshness import FreshnessSource, Tree
from goalkeeper.runtime.judge import TRANSCRIPT_CHARACTERS, ChecksEvaluator, Finding, Question, judge
from goalkeeper.storage.journal import StampFile
from goalkeeper.storage.paths import session_files
from goalkeeper.workers.pi_worker import EPHEMERAL, PiWorker, PiWorkerConfig
from goalkeeper.worktree.fingerprint import WorkTree

_NAME_A_MODEL = "Name one with --model or GOALKEEPER_MODEL."
_BARE = ("--no-tools", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-context-files", "--no-approve")


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """What is to be evaluated, and by whom.

    Attributes:
        session: the session file.
        condition: what must be true.
        basis: settled by hand, None to ask the evaluator.
        proofs: commands named as proof by hand.
        evaluator: who is asked.
        model: litellm's name of the model for litellm, pi's for pi; None for the session's own model.
        goal_entry: the entry that set the goal, None to look for it.
    """

    session: Path
    condition: str
    basis: Basis | None = None
    proofs: tuple[str, ...] = ()
    evaluator: Literal["litellm", "pi"] = "litellm"
    model: str | None = None
    goal_entry: str | None = None


def evaluate_session(options: EvaluateOptions, *, as_json: bool) -> int:
    """Evaluate, print the result and return the exit code."""
    evaluation = asyncio.run(evaluate(options))
    print_evaluation(evaluation, as_json=as_json)
    judgement = evaluation.finding.judgement
    if isinstance(judgement, EvaluatorFailure):
        return code_of_evaluation(None, judgement.kind)
    return code_of_evaluation(judgement.verdict)


async def evaluate(options: EvaluateOptions, asker: LlmEvaluator | None = None) -> Evaluation:
    """Return what the evaluator claims and what the rules leave of it.

    Args:
        options: what is to be evaluated.
        asker: who is asked, by default the evaluator that the options name.

    Raises:
        UsageError: the file is no session, or the condition can't be one.
        PrerequisiteError: there is no model, or no key for it.
        PeerError: pi failed when it was asked about the session's model.
    """
    config = GoalConfig(options.condition, basis=options.basis, proofs=options.proofs)
    config.validate()
    header, transcript = _read(options.session)
    goal_entry = _goal_entry(options, transcript)
    question = Question(options.condition, Terms("tool", (), "default"), transcript, header.cwd, goal_entry)
    async with contextlib.AsyncExitStack() as stack:
        freshness = _freshness(header.cwd, options.session, stack)
        if not any(is_shown(entry) for entry in transcript.entries):
            question = replace(question, terms=config.terms() or question.terms)
            finding = await judge(question, ChecksEvaluator(()), freshness)  # nobody is asked about nothing
            return Evaluation(str(options.session), question, finding)
        asker = asker or await _open_evaluator(options)
        stack.push_async_callback(asker.close)
        terms, spent = config.terms(), Usage()
        if terms is None:
            settled, spent = await asker.settle_terms(options.condition)
            if isinstance(settled, EvaluatorFailure):
                return Evaluation(str(options.session), question, Finding(settled, usage=spent), settled=False)
            terms = settled
        question = replace(question, terms=terms)
        finding = await judge(question, asker, freshness)
        return Evaluation(str(options.session), question, replace(finding, usage=spent.plus(finding.usage)))


# ---- the session ----------------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[SessionHeader, Transcript]:
    if not path.is_file():
        raise UsageError(f"There is no session file {path}.", "pi keeps its sessions below ~/.pi/agent/sessions.")
    try:
        log = SessionLog(path)
        header = log.header()
        if header is None:
            raise UsageError(f"{path} is no session file of pi: its first line is no session header.")
        return header, log.read(TRANSCRIPT_CHARACTERS)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}.") from error


def _goal_entry(options: EvaluateOptions, transcript: Transcript) -> str | None:
    """Return the entry that set the goal; None if it lies before everything that was read, or is not there."""
    named = options.goal_entry
    if named is not None:
        if transcript.earlier == 0 and all(entry.id != named for entry in transcript.entries):
            raise UsageError(f"The session's branch has no entry {named}.")
        return named
    wanted = options.condition.strip()
    users = [entry for entry in transcript.entries if entry.kind == "user" and entry.text.strip() == wanted]
    return users[-1].id if users else None


# ---- freshness ------------------------------------------------------------------------------------------------


class _NoTree:
    """A session that no controller drove, or whose folder is gone: the order of edits decides."""

    async def fingerprint(self) -> str | None:
        return None

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        return ()


class _StoredStamps:
    """The stamps that a controller left behind; none are under way."""

    def __init__(self, stamps: Mapping[str, Stamp]) -> None:
        self._stamps = stamps

    async def drain(self, timeout: float) -> None:
        return

    def stamps(self) -> Mapping[str, Stamp]:
        return self._stamps


def _freshness(cwd: str, session: Path, stack: contextlib.AsyncExitStack) -> FreshnessSource:
    stamps: Mapping[str, Stamp] = {}
    if Path(cwd).is_absolute() and Path(cwd).is_dir():
        stamps = StampFile(cwd, session.absolute(), lambda _: None).load()
    tree: Tree = _NoTree()
    if stamps:
        tree = work_tree = WorkTree(cwd, own=session_files(session.absolute()))
        stack.callback(work_tree.close)
    return FreshnessSource(tree, _StoredStamps(stamps))


# ---- the evaluator --------------------------------------------------------------------------------------------


async def _open_evaluator(options: EvaluateOptions) -> LlmEvaluator:
    if options.evaluator == "litellm" and options.model:
        return await open_evaluator("litellm", options.model, None, None)
    used = last_model(options.session)
    if used is None and not options.model:
        raise PrerequisiteError("The session names no model that could be asked.", _NAME_A_MODEL)
    pi = find_pi()
    model = ModelInfo(*used) if used else None
    if model and options.evaluator == "litellm":
        model = await _describe(pi, model)
    return await open_evaluator(options.evaluator, options.model, model, pi)


async def _describe(pi: PiCommand, model: ModelInfo) -> ModelInfo:
    """Ask a bare pi, in an empty folder, where the requests of a model go."""
    chosen = (*_BARE, "--provider", model.provider, "--model", model.model_id)
    with tempfile.TemporaryDirectory(prefix="goalkeeper-evaluate-") as folder:
        worker = PiWorker(PiWorkerConfig(pi, folder, EPHEMERAL, chosen))
        try:
            info = await worker.start()
        except PeerError as error:
            raise PrerequisiteError(
                f"pi can't use the session's model {model.provider}/{model.model_id}.",
                "\n".join(part for part in (error.hint, _NAME_A_MODEL) if part),
            ) from error
        finally:
            await worker.close()
    if info.model is None or info.model.provider != model.provider:
        raise PrerequisiteError(
            f"pi does not know the session's model {model.provider}/{model.model_id}.", _NAME_A_MODEL
        )
    return info.model

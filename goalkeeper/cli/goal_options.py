"""The options of `goal`, checked for meaning before anything is started.

Knows nothing of pi. One command line serves a condition and the reserved words; an option that does not go with the
word is an error, not something to ignore.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import typer

from goalkeeper.cli.errors_shown import run_command
from goalkeeper.config import (
    CLEAR_WORDS,
    CONTINUE_SESSION,
    NEW_SESSION,
    NO_SESSION,
    Budget,
    GoalConfig,
    Renewal,
    WorkerChoice,
)
from goalkeeper.core.state import EvaluatorName
from goalkeeper.core.verdict import Basis
from goalkeeper.errors import UsageError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}

BUDGET_OPTIONS = {"max_runs", "max_minutes", "max_cost"}
SHOWN_OPTIONS = {"json", "quiet"}
ALLOWED: dict[str, set[str]] = {
    "clear": {"session", "cwd", "json"},
    "resume": BUDGET_OPTIONS | SHOWN_OPTIONS | {"session", "cwd", "evaluator", "model"},
    "log": {"since", "cwd", "json"},
    "explain": {"session", "cwd", "json"},
    "status": {"session", "cwd", "json"},
}
"""Options that go with each reserved word; a condition takes all but --since."""

ELSEWHERE = {name: f"goalkeeper {name}" for name in ("evaluate", "doctor", "setup", "demo", "version")}
"""Words that are commands, but not of `goal`."""

SLIP = 0.8
"""How like a reserved word another word must be to be taken for a slip: "resum", "stauts", "clean"."""

NOT_FOR_PI = {
    **dict.fromkeys(("--mode", "--print", "-p", "--tui-mode"), "It always works over RPC."),
    **dict.fromkeys(("--help", "-h", "--version", "-v", "--list-models", "--export"), "Ask pi itself."),
    **dict.fromkeys(
        ("--session", "--session-id", "--continue", "-c", "--resume", "-r", "--fork", "--no-session"),
        "Use --session, --continue or --no-session of goal itself, before the --.",
    ),
}
"""pi's options that it can't be handed through `goal`, with what to do instead."""

CONDITION_FILE_LIMIT = 1_000_000
"""Bytes of a file that is read for a condition; what is longer is none, and may have no end."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def whole_number(text: str) -> int:
    """Read a whole number as people write it: digits only."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise typer.BadParameter(f"{text!r} is no whole number.")
    return int(text)


def number(text: str) -> float:
    """Read a plain decimal number."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise typer.BadParameter(f"{text!r} is no plain number.")
    return float(text)


def seconds(text: str) -> float:
    """Read a duration: 90, 90s, 10m or 1.5h."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)", text)
    if not match:
        raise typer.BadParameter(f"{text!r} is no duration; say 90s, 10m or 2h.")
    return float(match[1]) * _UNITS[match[2]]


@app.command()
def goal(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="CONDITION | WORD", hidden=True)] = None,
    condition: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The condition, for one that starts with a dash.")
    ] = None,
    condition_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read the condition from a file, - for stdin.")
    ] = None,
    check: Annotated[
        list[str] | None, typer.Option(metavar="CMD", help="A command that must exit 0; repeatable.")
    ] = None,
    proof: Annotated[
        list[str] | None, typer.Option(metavar="CMD", help="A command whose result proves it; repeatable.")
    ] = None,
    basis: Annotated[
        str | None, typer.Option(metavar="WORD", help="tool or answer; else the evaluator settles it.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Files that may change after the proof; repeatable.")
    ] = None,
    max_runs: Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="Completed runs [10].")] = None,
    max_minutes: Annotated[float | None, typer.Option(parser=number, metavar="N", help="Awake minutes [30].")] = None,
    max_cost: Annotated[
        float | None, typer.Option(parser=number, metavar="USD", help="Of worker and evaluator together [no limit].")
    ] = None,
    run_timeout: Annotated[
        float | None, typer.Option(parser=seconds, metavar="TIME", help="Abort a run after e.g. 90s, 10m or 2h.")
    ] = None,
    evaluator: Annotated[str, typer.Option(metavar="WORD", help="litellm, pi or checks.")] = "litellm",
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The evaluator's model.", envvar="GOALKEEPER_MODEL")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="PATH|ID", help="A session's path or id.")] = None,
    continue_: Annotated[bool, typer.Option("-c", "--continue", help="The folder's latest session.")] = False,
    no_session: Annotated[bool, typer.Option("--no-session", help="Keep nothing.")] = False,
    cwd: Annotated[str, typer.Option("-C", "--cwd", metavar="DIR", help="The folder to work in.")] = ".",
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the outcome.")] = False,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="With log: how far back, e.g. 24h.")] = None,
) -> None:
    """Keep pi working until cited, checked evidence shows that CONDITION is met, or pause.

    Without arguments: the status. WORD: resume, clear (stop, off, reset, none, cancel), log, explain. What stands
    behind -- goes to pi: goal "the tests pass" -- --model sonnet:high
    """
    given = {name for name in ctx.params if _was_typed(ctx, name)} - {"words"}
    text = " ".join(words or [])
    word = text.strip().casefold()
    word = "clear" if word in CLEAR_WORDS else word
    values = ctx.params
    pi_args = cast("list[str]", ctx.obj or [])
    if word in ALLOWED and condition is None and condition_file is None:
        refuse_others(word, given)
        if pi_args and word != "resume":
            raise UsageError(f"`goal {word}` starts nothing that could take arguments of pi.")
        refuse_of_ours(pi_args)
        run_word(word, values, given, pi_args)
    refuse_slip(word)
    if since is not None:
        raise UsageError("--since goes with `goal log`.")
    if not words and condition is None and condition_file is None:
        raise UsageError("There is no condition.", 'Say what must be true, e.g. goal "the tests pass".')
    config = GoalConfig(
        condition=the_condition(text, condition, condition_file),
        budget=Budget(max_runs, max_minutes, max_cost),
        basis=cast("Basis | None", one_of("--basis", basis, ("tool", "answer"))),
        proofs=proof or (),
        checks=check or (),
        ignore=ignore or (),
        evaluator=evaluator_name(evaluator),
        # The variable names a model of litellm's; other evaluators do not know it by that name.
        model=model if evaluator == "litellm" or "model" in given else None,
        run_timeout=run_timeout,
    )
    config.validate()
    refuse_of_ours(pi_args)
    refuse_inside_worker()
    from goalkeeper.cli.goal_run import set_goal

    choice = WorkerChoice(folder(cwd), session_choice(session, continue_, no_session), tuple(pi_args))
    raise typer.Exit(set_goal(config, choice, as_json=json, quiet=quiet))


def _was_typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def run_command_line(argv: Sequence[str]) -> int:
    """Run a command line of `goal` that is not a plain status; return the exit code."""
    arguments, pi_args = split_pi_args(argv)
    return run_command(app, arguments, program="goal", obj=pi_args)


def split_pi_args(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return our arguments and, behind the first `--`, pi's."""
    arguments = list(argv)
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def run_word(word: str, values: dict[str, Any], given: set[str], pi_args: Sequence[str]) -> NoReturn:
    """Carry out a reserved word."""
    from goalkeeper.cli import goal_run, history, status

    cwd, session, as_json = folder(values["cwd"]), values["session"], values["json"]
    if word == "clear":
        refuse_inside_worker()
        raise typer.Exit(goal_run.clear(cwd, session, as_json=as_json))
    if word == "resume":
        budget = Budget(values["max_runs"], values["max_minutes"], values["max_cost"])
        budget.validate()
        refuse_inside_worker()
        chosen = evaluator_name(values["evaluator"]) if "evaluator" in given else None
        renewal = Renewal(budget, chosen, values["model"] if "model" in given else None)
        raise typer.Exit(goal_run.resume(cwd, session, renewal, tuple(pi_args), as_json=as_json, quiet=values["quiet"]))
    if word == "log":
        since = None if values["since"] is None else seconds(values["since"])
        raise typer.Exit(history.log(cwd, since=since, as_json=as_json))
    if word == "explain":
        raise typer.Exit(history.explain(cwd, session=session, as_json=as_json))
    raise typer.Exit(status.status(cwd, as_json=as_json, session=session))


def refuse_others(word: str, given: set[str]) -> None:
    """Refuse options that mean nothing with a word."""
    others = sorted(name.rstrip("_").replace("_", "-") for name in given - ALLOWED[word])
    if others:
        raise UsageError(f"--{others[0]} does not go with `goal {word}`.")


def refuse_of_ours(pi_args: Sequence[str]) -> None:
    """Refuse arguments of pi that choose how it runs or in which session: both are for `goal` to choose."""
    for argument in pi_args:
        hint = NOT_FOR_PI.get(argument.partition("=")[0])
        if hint is not None:
            raise UsageError(f"{argument} can't stand behind --, where it goes to a pi that goal starts itself.", hint)


def refuse_slip(word: str) -> None:
    """Refuse a single word that is more likely a slip than a condition: to ask again costs nothing, a run does."""
    near = difflib.get_close_matches(word, sorted({*ALLOWED, *CLEAR_WORDS}), 1, SLIP)
    meant = ELSEWHERE.get(word) or (f"goal {near[0]}" if near and " " not in word else None)
    if meant and word not in ALLOWED:
        raise UsageError(
            f"`goal {word}` would set the condition {word!r}. Was `{meant}` meant?",
            f"If not, say it in more words, or with --condition {word}.",
        )


def the_condition(text: str, option: str | None, file: str | None) -> str:
    """Return the condition from the one place where it was given."""
    places = [place for place in (text or None, option, file) if place is not None]
    if len(places) > 1:
        raise UsageError("The condition was given more than once.", "Quote it as a whole, or use one option.")
    if file is None:
        return option if option is not None else text
    try:
        with Path("/dev/stdin" if file == "-" else file).open("rb") as stream:
            data = stream.read(CONDITION_FILE_LIMIT + 1)
        if len(data) > CONDITION_FILE_LIMIT:
            raise UsageError(f"{file} is too long for a condition.", "Name the file in the condition instead.")
        return data.decode("utf-8").strip()
    except OSError as error:
        raise UsageError(f"The condition can't be read from {file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8.") from error


def one_of(name: str, value: str | None, words: tuple[str, ...]) -> str | None:
    """Return the value if it is one of the words."""
    if value is None or value in words:
        return value
    raise UsageError(f"{name} is {value!r}, but it must be one of: {', '.join(words)}.")


def evaluator_name(value: str) -> EvaluatorName:
    """Return the evaluator if there is one of that name."""
    return cast(EvaluatorName, one_of("--evaluator", value, ("litellm", "pi", "checks")))


def session_choice(session: str | None, latest: bool, ephemeral: bool) -> str:
    """Return which session to work in; the three ways exclude each other."""
    if sum((session is not None, latest, ephemeral)) > 1:
        raise UsageError("--session, --continue and --no-session exclude each other.")
    if session is not None and not session.strip():
        raise UsageError("--session is empty.")
    return session or (CONTINUE_SESSION if latest else NO_SESSION if ephemeral else NEW_SESSION)


def folder(cwd: str) -> str:
    """Return the absolute path of an existing folder."""
    path = Path(cwd).absolute()
    if not path.is_dir():
        raise UsageError(f"{path} is no folder.")
    return os.path.normpath(path)


def refuse_inside_worker() -> None:
    """Refuse when the caller is a worker of ours: it must not steer its own controller (spec, section 7)."""
    if os.environ.get("GOALKEEPER_WORKER"):
        raise UsageError(
            "A worker can't steer its own controller.", "Status, log and explain work here; the rest is for people."
        )

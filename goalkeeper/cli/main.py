"""The `goalkeeper` command: evaluate, doctor, setup, demo, version.

Knows nothing of how they work: each is imported when it is called, so that `goalkeeper --help` stays fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from goalkeeper import __version__
from goalkeeper.cli.errors_shown import run_command
from goalkeeper.cli.output import open_closed_streams

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def goalkeeper(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Tools around `goal`, which keeps pi working until cited, checked evidence shows that a goal is met."""
    if version:
        print_version()
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
def evaluate(
    session: Annotated[Path, typer.Argument(metavar="SESSION.jsonl", help="A session file of pi.")],
    condition: Annotated[str, typer.Argument(metavar="CONDITION", help="What must be true.")],
    basis: Annotated[
        Literal["tool", "answer"] | None, typer.Option(help="What counts as proof; else the evaluator settles it.")
    ] = None,
    proof: Annotated[
        list[str] | None, typer.Option(metavar="CMD", help="A command named as proof; repeatable.")
    ] = None,
    evaluator: Annotated[Literal["litellm", "pi"], typer.Option(help="Who is asked.")] = "litellm",
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="The evaluator's model; else GOALKEEPER_MODEL, else the session's own."),
    ] = None,
    goal_entry: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Id of the entry that set the goal; else the last message with its words."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Judge an existing session once: what the evaluator claims, and what the rules leave of it.

    Nothing is run and nothing is changed. Exit code 0: met. 3: not met, unknown, or the evaluator failed.
    """
    from goalkeeper.cli.evaluate import EvaluateOptions, evaluate_session

    options = EvaluateOptions(
        session=session,
        condition=condition,
        basis=basis,
        proofs=tuple(proof or ()),
        evaluator=evaluator,
        model=model or os.environ.get("GOALKEEPER_MODEL") or None,
        goal_entry=goal_entry,
    )
    return evaluate_session(options, as_json=json)


@app.command()
def doctor(
    cwd: Annotated[Path, typer.Option("-C", "--cwd", metavar="DIR", help="The folder to look at.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Check what `goal` needs on this machine and in this folder; each problem comes with its fix."""
    from goalkeeper.cli.doctor import run_doctor

    return run_doctor(cwd, as_json=json)


@app.command()
def setup() -> int:
    """Install pi, and a Node that can run it if there is none, into the user's data folder."""
    from goalkeeper.cli.setup import run_setup

    return run_setup()


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder of the demo.")] = False,
) -> int:
    """Watch a goal being kept in a small project: real pi, and a scripted model in place of a paid one."""
    from goalkeeper.cli.demo import run_demo

    return run_demo(keep=keep)


@app.command("version")
def print_version() -> None:
    """Print the version."""
    print(f"goalkeeper {__version__}")


def run(arguments: Sequence[str]) -> int:
    """Run `goalkeeper` with arguments and return its exit code."""
    return run_command(app, arguments, program="goalkeeper")


def main() -> None:
    """Run `goalkeeper` with the process's arguments and exit."""
    open_closed_streams()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

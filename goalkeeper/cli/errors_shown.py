"""The one place where a command line ends: errors as a message and a hint on stderr, and an exit code for everything.

Knows nothing of what the commands do. Only a fault of ours shows a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import typer

from goalkeeper.cli.exit_codes import ExitCode, code_of_error
from goalkeeper.errors import GoalkeeperError, UsageError
from goalkeeper.evidence.text import clean


def run_command(app: typer.Typer, arguments: Sequence[str], *, program: str, obj: Any = None) -> int:
    """Run a command line and return its exit code.

    Args:
        app: the commands; what one of them returns, or raises as `typer.Exit`, is the exit code.
        arguments: what was typed behind the program's name.
        program: the program's name, for usage texts and messages.
        obj: handed to the commands as the context's `obj`.
    """
    try:
        result = app(args=list(arguments), prog_name=program, obj=obj, standalone_mode=False)
        sys.stdout.flush()
    except GoalkeeperError as error:
        show_error(error, program)
        return code_of_error(error)
    except typer.TyperException as error:
        show_error(UsageError(error.format_message(), f"Try `{program} --help`."), program)
        return ExitCode.USAGE
    except (KeyboardInterrupt, typer.Abort):
        print(f"{program}: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.MET
    return result if isinstance(result, int) else ExitCode.MET


def show_error(error: GoalkeeperError, program: str, stream: TextIO | None = None) -> None:
    """Print the message and, on lines of its own, the hint; what others wrote into them can't move the cursor."""
    stream = sys.stderr if stream is None else stream
    print(f"{program}: {clean(error.message).strip()}", file=stream)
    for line in clean(error.hint).strip().splitlines():
        print(f"  {line}", file=stream)

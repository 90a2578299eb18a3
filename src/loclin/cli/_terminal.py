"""The standard streams: what is said on them, and how the command ends where they fail."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any

import typer

from loclin.cli._errors import InputError, one_line, printable

__all__ = ["lost_output", "run", "say", "told"]

UsageError: Any = typer.BadParameter.__bases__[0]  # of the click that typer brings
WRONG, LOST, INTERRUPTED, ENDED = 2, 1, 130, 143  # exit statuses; 0 is success


def say(text: str, *, error: bool = False) -> None:
    """Print a line at once, every name in it printable."""
    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        print(printable(text), file=stream, flush=True)


@contextmanager
def told() -> Iterator[None]:
    """Say in one line what is wrong, and leave with the status that tells its kind."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # what the library says to users
            said: set[str] = set()

            def note(message: Warning | str, *_: object) -> None:
                if str(message) not in said:
                    say(f"note: {one_line(str(message))}", error=True)
                said.add(str(message))

            warnings.showwarning = note  # type: ignore[assignment]
            yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        say("loclin: interrupted", error=True)
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        if error.filename is None:  # the screen, or a pipe that is closed
            raise typer.Exit(lost_output(error)) from None
        say(f"loclin: {one_line(error)}", error=True)
        raise typer.Exit(WRONG) from None
    except (InputError, ImportError, TypeError, ValueError) as error:
        say(f"loclin: {one_line(error)}", error=True)
        raise typer.Exit(WRONG) from None


def lost_output(error: OSError) -> int:
    """Say that the standard output cannot be written, and return the exit status.

    A reader that left, as in ``loclin compare | head -1``, is told nothing.
    """
    # what it still holds must not fail again at the end
    with suppress(OSError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        say(
            f"loclin: the standard output cannot be written ({error.strerror})",
            error=True,
        )
    return LOST


def run(app: typer.Typer) -> int:
    """Run the command line and return its exit status; bad options get one line."""
    _prepare()
    try:
        status = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return lost_output(error)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            where = error.ctx.command_path if error.ctx is not None else "loclin"
            say(
                f"loclin: {one_line(error.format_message())} ({where} --help)", error=True
            )
        return WRONG
    return status if isinstance(status, int) else 0


def _prepare() -> None:
    """Keep closed streams' numbers from files, and print what an encoding lacks escaped."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, this one
    with suppress(ValueError):  # a thread that is not the main one
        signal.signal(signal.SIGTERM, _end)  # so that what is half written is removed
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _end(*_: object) -> None:
    raise SystemExit(ENDED)

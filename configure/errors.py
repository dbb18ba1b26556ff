# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors that the user can correct."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

# Exit status (EX_TEMPFAIL) of failures after which the same command can
# continue.
TRY_AGAIN = 75


class UserError(ValueError):
    """A mistake of the user, not a bug of the program.

    The message names the file, line, field and value (if they exist), the
    expectation, and a remedy. Entry points print it as `error: ...` and exit
    without a traceback; any other exception is a bug and keeps its traceback.
    """

    exit_status: int | None = None  # None: the program's default


def last_line(error: Exception) -> str:
    """Return the last line of an exception's text, or the name of its class.

    Errors of libraries end with their cause, and some have no text.
    """
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


def missing_extra(package: str, extra: str, error: ImportError) -> UserError:
    """Return the error for a missing package of an optional extra."""
    return UserError(
        f"{package} cannot be imported ({error}). To install the extra {extra},"
        " run in the project's checkout: pip install -c constraints.txt"
        f' ".[{extra}]"'
    )


@contextlib.contextmanager
def append_to_errors(lines: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Append lines to the message of any error raised in the block.

    Warnings collected so far (invalid rows, bytes that are not UTF-8) are often
    the cause of the error, after which nothing else would print them. New lines
    are appended to the message of a UserError. Other exceptions get a note,
    which tracebacks show.
    """
    try:
        yield
    except Exception as error:
        notes = getattr(error, "__notes__", ())
        present = "\n".join([str(error), *notes]).split("\n")
        if text := "\n".join(line for line in lines() if line not in present):
            if isinstance(error, UserError):
                error.args = (f"{error}\n{text}", *error.args[1:])
            else:
                error.add_note(text)
        raise

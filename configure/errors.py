# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors that the user can correct."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

TRY_AGAIN = 75  # exit status where the same command goes on; EX_TEMPFAIL


class UserError(ValueError):
    """A mistake in what was asked for, not in the program.

    The message names the file, line, field and value where there is one, what
    was expected, and the remedy. Entry points print it as `error: ...` and exit
    without a traceback; every other exception is a bug and keeps its traceback.
    """

    exit_status: int | None = None  # None: that of any mistake


def missing_extra(what: str, extra: str, error: ImportError) -> UserError:
    """Words for a package of an extra that cannot be imported."""
    return UserError(
        f"{what} cannot be imported ({error}); install the extra, in the"
        " project's checkout: pip install -c constraints.txt"
        f' ".[{extra}]"'
    )


@contextlib.contextmanager
def append_to_errors(lines: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Add lines to whatever error is raised inside.

    What was collected until then (bad rows, bytes that are not UTF-8) is often
    the reason of the error, and nothing prints it after one. A UserError's
    message gets the lines that it lacks; other exceptions get a note, which
    tracebacks show.
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

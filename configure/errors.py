# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one exception that means: the user can fix this."""


class UserError(ValueError):
    """A mistake in what was asked for, not in the program.

    The message names the file, line, field and value where there is one, what
    was expected, and the remedy. Front doors print it as `error: ...` and exit
    without a traceback; every other exception is a bug and keeps its traceback.
    """

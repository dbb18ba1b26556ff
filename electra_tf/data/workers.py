# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Worker processes that end with their parent, and signals around a fork."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator

from configure import output

PR_SET_PDEATHSIG = 1  # of prctl


def become_worker() -> None:
    """Make this process one that its parent ends, whose output may be lost."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent ends workers.
    output.outlive_output()
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    # A parent that is killed cannot; what its workers wrote on would meet what
    # the same command writes next. Linux ends them before it is reaped.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=end_with_parent, daemon=True).start()


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """Hold a Ctrl-C back until workers are forked.

    Python runs hooks around a fork, and loses an exception that a signal raises
    in one of them: the program would go on.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

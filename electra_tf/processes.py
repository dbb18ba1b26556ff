# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Worker processes that end with their parent, and signals during a fork."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator

from configure import output

# Option of prctl that sets the signal for a process whose parent dies.
PR_SET_PDEATHSIG = 1


def become_worker() -> None:
    """Make this process a worker that ends with its parent.

    The worker ignores Ctrl-C, because the parent ends the worker. The worker
    continues if its standard output is closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output.outlive_output()
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    # A killed parent cannot end its workers, which would then write to the same
    # files as the next run of the same command. Linux kills the workers before
    # the parent is reaped, so they have ended when the next run starts.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=end_with_parent, daemon=True).start()


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """Block Ctrl-C until workers are forked.

    Python runs hooks around a fork and ignores exceptions in them. If a signal
    raised an exception in a hook, the exception would be lost, and the program
    would continue.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Signals around a fork are not lost."""

FORK = """
import os, signal
from electra_tf.processes import interrupts_later
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
os.register_at_fork(after_in_parent=interrupt)
try:
    with interrupts_later():
        if not os.fork():
            os._exit(0)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_during_a_fork_is_raised_after_it(run_python):
    assert run_python("-c", FORK).stdout == "interrupted\n"

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A signal stops a run, even if nobody can read its output."""

import errno
import os
import signal

import pytest

from electra_tf.training import preemption
from electra_tf.training.preemption import PreemptionHandler


@pytest.fixture(params=[errno.EPIPE, errno.EBADF, errno.ENOSPC, errno.EAGAIN])
def without_readers(request, monkeypatch):
    """Let every write to a descriptor fail."""

    def fail(number, text):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(preemption.os, "write", fail)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_recorded_with_closed_output(without_readers, number):
    handler = PreemptionHandler()
    handler._note(number, None)
    assert handler.requested() and handler.signal_number == number


def test_the_time_after_sigterm_ends_a_run_with_closed_output(
    without_readers, monkeypatch
):
    statuses = []
    monkeypatch.setattr(preemption.os, "_exit", statuses.append)
    PreemptionHandler(1.0)._leave()
    assert statuses == [128 + signal.SIGTERM]


def test_a_group_s_sigterm_that_a_parent_passes_on_is_one_request(monkeypatch):
    handler = PreemptionHandler()
    for _ in range(3):
        handler._note(signal.SIGTERM, None)
    monkeypatch.setattr(preemption, "_SAME_REQUEST_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        handler._note(signal.SIGTERM, None)


def test_a_second_signal_stops_at_once_with_closed_output(without_readers):
    handler = PreemptionHandler()
    handler._note(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        handler._note(signal.SIGINT, None)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The machine's memory, as a container limits it."""

import os
import sys

import pytest

from electra_tf.analysis import machine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="/proc and cgroups are Linux's"
)


@pytest.fixture
def limits(monkeypatch, tmp_path):
    """Writes what the cgroup files say."""

    def write(*texts):
        paths = []
        for i, text in enumerate(texts):
            paths.append(tmp_path / f"limit_{i}")
            paths[-1].write_text(text)
        missing = tmp_path / "missing"
        monkeypatch.setattr(machine, "_LIMITS", (*paths, missing))

    return write


def test_without_a_limit_it_is_the_whole_machine(limits):
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for texts in ((), ("max\n",), (str(1 << 62),)):
        limits(*texts)
        assert machine.machine_memory() == whole
    assert 0 < machine.free_memory() <= whole


def test_a_containers_limit_counts(limits):
    limits("max\n", "12345678\n")
    assert machine.machine_memory() == 12345678
    assert machine.free_memory() == 12345678

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The machine's memory, as a container limits it."""

import os
import sys

import pytest

from electra_tf.plan import memory

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="/proc and cgroups are Linux's"
)


@pytest.fixture
def cgroups(monkeypatch, tmp_path):
    """Makes up the system's tree of groups and where the process is in it."""

    def write(own, **limits):
        (tmp_path / "own").write_text(own)
        for path, limit in limits.items():
            file = tmp_path / "tree" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{limit}\n")
        monkeypatch.setattr(memory, "_CGROUPS", str(tmp_path / "tree"))
        monkeypatch.setattr(memory, "_OWN_CGROUPS", str(tmp_path / "own"))

    return write


def test_without_a_limit_it_is_the_whole_machine(cgroups):
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for own, limits in (
        ("", {}),
        ("0::/\n", {"memory.max": "max"}),
        ("0::/job\n", {"job/memory.max": 1 << 62}),
    ):
        cgroups(own, **limits)
        assert memory.machine_memory() == whole
    assert 0 < memory.free_memory() <= whole


@pytest.mark.parametrize(
    ("own", "path"),
    [
        ("0::/\n", "memory.max"),
        ("0::/user/job\n", "user/job/memory.max"),
        ("0::/user/job\n", "user/memory.max"),
        ("4:cpu:/\n5:memory:/c\n", "memory/c/memory.limit_in_bytes"),
        ("4:cpu:/\n5:memory:/c\n", "memory/memory.limit_in_bytes"),
    ],
)
def test_a_limit_of_a_group_or_one_above_counts(cgroups, own, path):
    others = {"user/other/memory.max": 1, "memory/d/memory.limit_in_bytes": 1}
    cgroups(own, **others, **{path: 12345678})
    assert memory.machine_memory() == 12345678
    assert memory.free_memory() == 12345678

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How much memory the machine has for a process, and has free."""

import os

# Where Linux says how much a container may take: in cgroups v2, in v1.
_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def machine_memory() -> int | None:
    """Returns the bytes of this machine, or of the container that it is.

    None where the system does not say.
    """
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return min([whole, *_container_limits()])


def free_memory() -> int | None:
    """Returns the bytes to be had without swapping, or `machine_memory`'s."""
    whole = machine_memory()
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    available = int(line.split()[1]) << 10
                    return min(available, whole or available)
    except OSError:
        pass
    return whole


def _container_limits() -> list[int]:
    found = []
    for path in _LIMITS:
        try:
            with open(path) as file:
                found.append(int(file.read()))
        except (OSError, ValueError):  # Not there, or "max".
            continue
    return found

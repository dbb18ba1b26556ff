# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How much memory the machine has for a process, and has free."""

import os
import pathlib

_CGROUPS = "/sys/fs/cgroup"
_OWN_CGROUPS = "/proc/self/cgroup"


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
    """Returns the bytes that the machine has free, or `machine_memory`'s.

    In a container at most its limit; what it has used of that already is not
    taken off.
    """
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
    """What Linux lets this process take: in cgroups v1 and v2, if limited."""
    found = []
    for path in _limit_files():
        try:
            with open(path) as file:
                found.append(int(file.read()))
        except (OSError, ValueError):  # Not there, or "max".
            continue
    return found


def _limit_files() -> list[str]:
    """Files that hold a limit, of the process's groups and those above."""
    v2, v1 = ("", "memory.max"), ("memory", "memory.limit_in_bytes")
    groups = dict.fromkeys((v2, v1), pathlib.PurePosixPath("/"))
    try:
        with open(_OWN_CGROUPS) as file:
            for line in file:
                _, kinds, path = line.rstrip("\n").split(":", 2)
                group = pathlib.PurePosixPath(path)
                if not kinds:
                    groups[v2] = group
                elif "memory" in kinds.split(","):
                    groups[v1] = group
    except (OSError, ValueError):
        pass
    return [
        os.path.join(_CGROUPS, folder, str(level).lstrip("/"), name)
        for (folder, name), group in groups.items()
        for level in (group, *group.parents)
    ]

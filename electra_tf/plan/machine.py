# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Memory and cores of the machine, and the memory of this process."""

import contextlib
import os
import pathlib

# Maximum number of cores that share a batch. The gain from sharing was measured
# only up to this number.
_MOST_CORES = 4

_CGROUPS = "/sys/fs/cgroup"
_STATUS = "/proc/self/status"
_OWN_CGROUPS = "/proc/self/cgroup"


def machine_memory() -> int | None:
    """Return this machine's or container's memory in bytes; None if unknown."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    for path in _limit_files():  # Files can be missing or contain "max".
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            memory = min(memory, int(file.read()))
    return memory


def machine_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def configured_cores(micro_batch_size: int, may_share: bool) -> int:
    """Return the number of cores that share each training batch.

    Several cores share a batch only if neither an hparam nor an environment
    variable sets the threads of an operation, and if the micro-batch size is a
    multiple of the number of cores. A GPU rules out sharing; `training.threads`
    checks for a GPU.

    Args:
      micro_batch_size: number of rows in a micro-batch.
      may_share: whether the hparams allow sharing.
    """
    variables = {"TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"}
    if not may_share or variables & os.environ.keys():
        return 1
    cores = machine_cores()
    if cores > _MOST_CORES or micro_batch_size % cores:
        return 1
    return cores


def peak_memory() -> int | None:
    """Return this process's peak memory in bytes; None if unknown."""
    try:
        with open(_STATUS, encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmHWM"].split()[0]) << 10  # KiB to bytes
    except (OSError, KeyError):
        return None


def _limit_files() -> list[str]:
    """Return the paths of this process's memory limit files (cgroups 1, 2).

    The limits of all parent groups apply, too.
    """
    v2, v1 = ("", "memory.max"), ("memory", "memory.limit_in_bytes")
    groups = dict.fromkeys((v2, v1), pathlib.PurePosixPath("/"))
    with contextlib.suppress(OSError, ValueError), open(_OWN_CGROUPS) as file:
        for line in file:
            _, kinds, path = line.rstrip("\n").split(":", 2)
            group = pathlib.PurePosixPath(path)
            if not kinds:
                groups[v2] = group
            elif "memory" in kinds.split(","):
                groups[v1] = group
    return [
        os.path.join(_CGROUPS, folder, str(level).lstrip("/"), name)
        for (folder, name), group in groups.items()
        for level in (group, *group.parents)
    ]

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a TensorFlow program goes, by kind of op, on the CPU."""

import collections
import glob
import os
from collections.abc import Callable


def by_kind(
    folder: str, run: Callable[[int], None], steps: int
) -> dict[str, dict[str, float]]:
    """Profiles `run(steps)`.

    Args:
      folder: where the profiler may leave its files.
      run: runs so many steps.
      steps: of which the profile is taken.

    Returns:
      For each kind of op, largest first: `milliseconds` of thread time and
      `calls`, both per step. Ops run beside each other, so that the sum is
      more than the wall time.
    """
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    tf.profiler.experimental.start(folder)
    run(steps)
    tf.profiler.experimental.stop()
    pattern = os.path.join(folder, "**", "*.xplane.pb")
    space = xplane_pb2.XSpace()
    for path in glob.glob(pattern, recursive=True):
        with open(path, "rb") as file:
            space.MergeFromString(file.read())
    milliseconds, calls = collections.Counter(), collections.Counter()
    for plane in space.planes:
        if "CPU" not in plane.name:
            continue
        for line in plane.lines:
            for event in line.events:
                # Ops are called `<name in the graph>:<kind>`; the threads'
                # own doings `Class::Method`.
                name = plane.event_metadata[event.metadata_id].name
                _, colon, kind = name.rpartition(":")
                if colon and kind.isidentifier() and "::" not in name:
                    milliseconds[kind] += event.duration_ps / 1e9 / steps
                    calls[kind] += 1
    return {
        kind: {"milliseconds": spent, "calls": calls[kind] / steps}
        for kind, spent in milliseconds.most_common()
    }

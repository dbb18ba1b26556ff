# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The steps after which a run logs, saves and evaluates."""

import dataclasses

from electra_tf.training.loop import MAX_CHUNK_STEPS


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Intervals in updates; 0 means never."""

    total_steps: int  # the run ends there
    log_every: int  # a row after the first step, and then at this interval
    save_every: int  # a checkpoint at this interval, and at the end
    eval_every: int  # an evaluation at this interval, and at the end
    max_chunk_steps: int = MAX_CHUNK_STEPS  # between two looks at the host
    # Last step of the first stage. The second stage makes other steps, so no
    # row has steps of both.
    stage_end: int = 0

    def logs_at(self, step: int) -> bool:
        if step in (1, self.stage_end, self.total_steps):
            return True
        return _is_due(step, self.log_every)

    def saves_at(self, step: int) -> bool:
        return step == self.total_steps or _is_due(step, self.save_every)

    def evaluates_at(self, step: int) -> bool:
        if not self.eval_every:
            return False
        return step == self.total_steps or _is_due(step, self.eval_every)

    def steps_to_next_stop(self, step: int) -> int:
        """Return the updates after `step` until the host has work to do."""
        # A chunk ends at multiples of its length, so that a continued run stops
        # at the same steps as one that was never stopped.
        chunk = min(self.max_chunk_steps, MAX_CHUNK_STEPS)
        stops = [self.total_steps, (step // chunk + 1) * chunk]
        if step < self.stage_end:
            stops.append(self.stage_end)
        for interval in (self.log_every, self.save_every, self.eval_every):
            if interval:
                stops.append((step // interval + 1) * interval)
        return max(min(stops) - step, 1)


def _is_due(step: int, interval: int) -> bool:
    return bool(interval) and step > 0 and step % interval == 0

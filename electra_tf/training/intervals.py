# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps after which a run logs, saves and evaluates."""

import dataclasses

from electra_tf.training.loop import MAX_CHUNK_STEPS


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Intervals between the events of a run, in updates; 0 means never."""

    total_steps: int  # last step of the run
    log_every: int  # log rows: after the first step, then at this interval
    save_every: int  # checkpoints: at this interval and at the end
    eval_every: int  # evaluations: at this interval and at the end
    # Maximum number of steps between two transfers to the host.
    max_chunk_steps: int = MAX_CHUNK_STEPS
    # Last step of the first of two stages; 0: a single stage. A row is logged
    # at this step, so that no row mixes steps of both stages.
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
        """Return the number of updates from `step` to the end of the chunk.

        A chunk ends before each event, and after a maximum number of updates.
        """
        # Chunks end at multiples of their maximum length, so that a continued
        # run stops at the same steps as an uninterrupted run.
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

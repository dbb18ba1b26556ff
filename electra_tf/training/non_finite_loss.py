# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Error about a loss that is not finite, and a file with the batch."""

import io
import os

import numpy as np

from configure.errors import UserError
from electra_tf.files.atomic import write_atomically
from electra_tf.training.loop import (
    Chunk,
)


class NonFiniteLossError(UserError):
    """Error about a step with a value that is NaN or infinite."""


def stop_on_non_finite(chunk: Chunk, seed: int, directory: str) -> None:
    """Raise a NonFiniteLossError if a value of a step is NaN or infinite.

    The batch and the numbers of the first such step are written to `directory`.
    """
    bad_steps = np.flatnonzero(~np.isfinite(chunk.values).all(axis=1))
    if not bad_steps.size:
        return
    index = int(bad_steps[0])
    step = chunk.first_step + index + 1
    numbers = dict(zip(chunk.names, chunk.values[index], strict=True))
    path = os.path.join(directory, f"non_finite_step_{step}.npz")
    arrays = {f"batch/{k}": v.numpy() for k, v in chunk.batches[index].items()}
    packed = io.BytesIO()
    np.savez(
        packed, step=step, seed=np.array([seed, step - 1]), **numbers, **arrays
    )
    write_atomically(path, packed.getvalue())
    listed = ", ".join(f"{name} {value:g}" for name, value in numbers.items())
    raise NonFiniteLossError(
        f"step {step} has a number that is not finite: {listed}. Training"
        " stopped without a checkpoint of this step. The batch and these"
        f" numbers are in {path}. The same command would continue from the"
        " latest checkpoint and reach the same batch. Lower learning_rate,"
        " raise num_warmup_steps, change seed, or pass --on_nonfinite=rewind to"
        " continue with other batches."
    )

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`run_pretraining.py` with masks and replaced tokens that are always the same.

Every replica draws its own, so that runs of different numbers of replicas
could not be compared.
"""

import pathlib
import runpy
import sys

import tensorflow as tf

from electra_tf.pretraining.model import PretrainingModel

ROOT = pathlib.Path(__file__).resolve().parents[2]
POSITIONS = [2, 4]
compute = PretrainingModel.compute


def compute_with_fixed_draws(self, features, **others):
    ids = features["input_ids"]
    at = tf.reduce_sum(tf.one_hot(POSITIONS, ids.shape[1], dtype=tf.int32), 0)
    positions = tf.tile([POSITIONS], [tf.shape(ids)[0], 1])
    chosen = tf.gather(ids, positions, batch_dims=1)
    masked = {
        "input_ids": ids * (1 - at) + self.vocab["[MASK]"] * at,
        "masked_lm_positions": positions,
        "masked_lm_ids": chosen,
        # Unequal weights on the replicas' rows.
        "masked_lm_weights": tf.cast(chosen > 130, tf.float32),
    }
    sampled = (chosen * 7) % 96 + 104
    return compute(
        self,
        features,
        masked_inputs=masked,
        sampled_token_ids=sampled,
        **others,
    )


if __name__ == "__main__":
    PretrainingModel.compute = compute_with_fixed_draws
    sys.argv[0] = str(ROOT / "run_pretraining.py")
    runpy.run_path(sys.argv[0], run_name="__main__")

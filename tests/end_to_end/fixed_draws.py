# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training with masks and replaced tokens that are always the same.

Every replica draws its own, so that runs of different numbers of replicas
could not be compared. A program: a worker's `run_pretraining.py`, or runs of
`WAYS`, for which devices must be made before TensorFlow starts.
"""

import json
import os
import pathlib
import runpy
import sys

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.finetuning import model as finetuning_model
from electra_tf.finetuning import runner as finetuning
from electra_tf.pretraining import masking, unigram
from electra_tf.pretraining import runner as pretraining
from electra_tf.pretraining.model import PretrainingModel

ROOT = pathlib.Path(__file__).resolve().parents[2]
POSITIONS = [2, 4]
# Strategy and micro-batches, by the name of the run.
WAYS = {
    "one": ("one_device", 1),
    "two": ("mirrored", 1),
    "cut": ("mirrored", 2),
}


def mask_inputs(features, special, rule, seeds):
    ids = features["input_ids"]
    at = tf.reduce_sum(tf.one_hot(POSITIONS, ids.shape[1], dtype=tf.int32), 0)
    positions = tf.tile([POSITIONS], [tf.shape(ids)[0], 1])
    chosen = tf.gather(ids, positions, batch_dims=1)
    return {
        "input_ids": ids * (1 - at) + special.mask_id * at,
        "masked_lm_positions": positions,
        "masked_lm_ids": chosen,
        # Unequal weights on the replicas' rows.
        "masked_lm_weights": tf.cast(chosen > 130, tf.float32),
    }


def sampling_logits(self, logits, masked_lm_ids):
    """Leaves one token to draw."""
    drawn = (masked_lm_ids * 7) % 96 + 104
    return tf.one_hot(drawn, tf.shape(logits)[-1], 0.0, -1e9)


def fix(patch=setattr):
    patch(masking, "mask_inputs", mask_inputs)
    patch(PretrainingModel, "sampling_logits", sampling_logits)
    patch(finetuning_model, "DROPOUT_RATE", 0.0)
    patch(unigram.count_tokens, "__defaults__", (100,))  # as in conftest.py


def main():
    fix()
    if "TF_CONFIG" in os.environ:
        sys.argv[0] = str(ROOT / "run_pretraining.py")
        return runpy.run_path(sys.argv[0], run_name="__main__")
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    data_dir, hparams, *ways = sys.argv[1:]
    hparams = json.loads(hparams)
    is_task = "task_names" in hparams
    config_class = FinetuningConfig if is_task else PretrainingConfig
    for name in ways:
        strategy, micro_batches = WAYS[name]
        config = config_class.create(
            name,
            data_dir,
            **hparams,
            distribution_strategy=strategy,
            gradient_accumulation_steps=micro_batches,
        )
        (finetuning if is_task else pretraining).run(config)


if __name__ == "__main__":
    main()

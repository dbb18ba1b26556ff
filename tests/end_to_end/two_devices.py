# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains with one device, with two, and so in micro-batches; prints results.

Pre-training has fixed masks, fine-tuning no dropout. A program of its own:
virtual devices must be made before TensorFlow starts.
"""

import dataclasses
import io
import json
import sys

import numpy as np
import orbit
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.finetuning import model as finetuning_model
from electra_tf.finetuning import runner as finetuning
from electra_tf.pretraining import build
from electra_tf.pretraining.build import build_model, build_optimizer
from electra_tf.training import strategy as strategies
from electra_tf.training.loop import EvalLoop, TrainLoop
from electra_tf.training.summaries import Console

STEPS = 3


def fixed_inputs(features):
    """Masks positions 2 and 4 and replaces them by fixed tokens."""
    ids = features["input_ids"]
    rows = tf.shape(ids)[0]
    positions = tf.tile([[2, 4]], [rows, 1])
    at = tf.reduce_sum(tf.one_hot([2, 4], ids.shape[1], dtype=tf.int32), 0)
    return {
        "input_ids": ids * (1 - at) + 103 * at,
        "masked_lm_positions": positions,
        "masked_lm_ids": tf.gather(ids, positions, batch_dims=1),
        # Unequal weights on the two devices' rows.
        "masked_lm_weights": tf.cast(
            tf.gather(ids, positions, batch_dims=1) > 130, tf.float32
        ),
    }


def batches(length, count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        ids = rng.integers(104, 200, [4, length]).astype(np.int32)
        mask = (np.arange(length) < rng.integers(6, length, [4, 1])).astype(
            np.int32
        )
        yield {
            "input_ids": tf.constant(ids * mask),
            "input_mask": tf.constant(mask),
            "segment_ids": tf.zeros_like(ids),
        }


def train(config, strategy, micro_batches=1):
    with strategies.creation_scope(strategy):
        model = build_model(config)
        optimizer = build_optimizer(config, model)
        step = orbit.utils.create_global_step()

    def prepare(features, seed):
        masked = fixed_inputs(features)
        return {}, {"weight_totals": model.weight_totals(features, masked)}

    def compute(features, seed, training, weight_totals=None):
        masked = fixed_inputs(features)
        return model.compute(
            features,
            masked_inputs=masked,
            sampled_token_ids=(masked["masked_lm_ids"] * 7) % 96 + 104,
            training=False,
            seed=seed,
            weight_totals=weight_totals,
        )

    loop = TrainLoop(
        compute=compute,
        variables=model.trainable_variables,
        optimizer=optimizer,
        iterator=batches(config.max_seq_length, STEPS),
        step=step,
        seed=0,
        strategy=strategy,
        step_values=build.step_values,
        micro_batches=micro_batches,
        prepare=prepare,
    )
    loop.train(tf.constant(STEPS))
    chunk = loop.take_chunk()
    evaluator = EvalLoop(
        compute=compute,
        seed=0,
        strategy=strategy,
        outputs=lambda features, outputs: {"probs": outputs["disc_probs"]},
    )
    evaluated = []

    def take(arrays, loss):
        evaluated.extend([loss, *arrays["probs"].tolist()])

    evaluator.run(batches(config.max_seq_length, 1), take)
    return {
        "names": chunk.names,
        "values": chunk.values.tolist(),
        "step": int(step.numpy()),
        "evaluation": evaluated,
        "weights": {
            v.name.split(":")[0]: v.numpy().ravel().tolist()
            for v in model.trainable_variables
        },
    }


def pretrain(hparams):
    config = PretrainingConfig.create("m", "none", **hparams)
    one = train(config, tf.distribute.OneDeviceStrategy("/cpu:0"))
    mirrored = strategies.from_config(
        dataclasses.replace(config, distribution_strategy="mirrored")
    )
    assert mirrored.num_replicas_in_sync == 2
    two = train(config, mirrored)
    return [one, two, train(config, mirrored, micro_batches=2)]


def finetune(data_dir, hparams, strategy, micro_batches):
    config = FinetuningConfig.create(
        "m",
        data_dir,
        **hparams,
        distribution_strategy=strategy,
        gradient_accumulation_steps=micro_batches,
        overwrite=True,
    )
    found = finetuning.run(config, Console(io.StringIO()))
    return found["trials"][0]["results"]


def main():
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    finetuning_model.DROPOUT_RATE = 0.0  # Each device draws its own.
    hparams, *data_dir = sys.argv[1:]
    hparams = json.loads(hparams)
    if data_dir:
        ways = (("one_device", 1), ("mirrored", 1), ("mirrored", 2))
        results = [finetune(*data_dir, hparams, *way) for way in ways]
    else:
        results = pretrain(hparams)
    print("RESULT" + json.dumps(results))


if __name__ == "__main__":
    main()

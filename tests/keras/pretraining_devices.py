# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-trains on two devices by the loop and by `fit`; prints the difference.

A program of its own: virtual devices must be made before TensorFlow starts.
"""

import json
import sys

import numpy as np
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.pretraining import build
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training import strategy as strategies

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)


def batches():
    ids = np.random.default_rng(0).integers(104, 200, [8, 16]).astype(np.int32)
    features = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    features["segment_ids"] = np.zeros_like(ids)
    dataset = tf.data.Dataset.from_tensor_slices(features)
    return dataset.batch(4, drop_remainder=True)


def main():
    config = PretrainingConfig.create(
        "m",
        "none",
        vocab_file=sys.argv[1],
        vocab_size=200,
        max_seq_length=16,
        train_batch_size=4,
        num_train_steps=10,
        num_warmup_steps=1,
        model_hparam_overrides={
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
        },
    )
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with strategies.creation_scope(strategy):
        model = build.build_model(config)
        optimizer = build.build_optimizer(config, model)
        step = tf.Variable(0, dtype=tf.int64)
    loop = build.build_train_loop(
        config, model, optimizer, iter(batches()), step, strategy
    )
    loop.train(2)
    values = loop.take_chunk().values[:, 0]
    with strategy.scope():
        fitted = PretrainingModel(config)
    fitted.compile()
    history = fitted.fit(batches(), verbose=0).history
    differences = [
        float(np.abs(one.numpy() - other.numpy()).max())
        for one, other in zip(model.variables, fitted.variables, strict=True)
    ]
    result = {
        "replicas": strategy.num_replicas_in_sync,
        "largest_difference": max(differences),
        "loss": history["loss"][0],
        "loop_loss": float(values.mean()),
    }
    print("RESULT" + json.dumps(result))


if __name__ == "__main__":
    main()

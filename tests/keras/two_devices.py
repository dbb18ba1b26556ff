# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Train on one device and on two devices, with `fit` and with the loop."""

import json
import sys

import numpy as np
import tensorflow as tf
import tf_keras

from configure.pretraining import PretrainingConfig
from electra_tf.keras import Encoder
from electra_tf.pretraining import build
from electra_tf.pretraining.model import PretrainingModel, build_model
from electra_tf.training.replicas import creation_scope
from tests.conftest import TINY

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
SIZES = TINY["model_hparam_overrides"] | {"num_hidden_layers": 1}
RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
IDS = np.random.default_rng(0).integers(104, 200, [16, 8]).astype(np.int32)


def fit(strategy):
    """Fit a user's model without dropout."""
    with strategy.scope():
        rates = dict.fromkeys(RATES, 0.0)
        encoder = Encoder(200, seed=3, initializer_range=0.3, **SIZES, **rates)
        ids = tf_keras.Input([8], dtype="int32")
        kernel = tf_keras.initializers.GlorotUniform(seed=1)
        head = tf_keras.layers.Dense(3, kernel_initializer=kernel)
        model = tf_keras.Model(ids, head(encoder(ids)["pooled_output"]))
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf_keras.optimizers.AdamW(1e-3), loss)
    settings = {"batch_size": 4, "epochs": 2, "shuffle": False, "verbose": 0}
    history = model.fit(IDS, IDS[:, 0] % 3, **settings)
    weights = [v.numpy().tolist() for v in model.trainable_weights]
    return {"loss": history.history["loss"], "weights": weights}


def dropout(strategy):
    """Return one number of each device's outputs for the same ids."""
    with strategy.scope():
        encoder = Encoder(200, seed=3, **SIZES)

    def replica():
        outputs = encoder(IDS, training=True)["pooled_output"]
        return tf.reduce_sum(tf.abs(outputs))

    results = tf.function(strategy.run)(replica)
    return [float(x) for x in strategy.experimental_local_results(results)]


def pretraining(strategy, vocab_file):
    """Compare weights and losses of `fit` with those of the loop."""
    features = {"input_ids": IDS, "input_mask": np.ones_like(IDS)}
    features["segment_ids"] = np.zeros_like(IDS)
    batches = tf.data.Dataset.from_tensor_slices(features)
    batches = batches.batch(8, drop_remainder=True)
    config = PretrainingConfig.create(
        "m",
        "none",
        vocab_file=vocab_file,
        vocab_size=200,
        max_seq_length=8,
        train_batch_size=8,
        num_train_steps=10,
        num_warmup_steps=1,
        model_hparam_overrides=SIZES,
    )
    with creation_scope(strategy):
        model = build_model(config)
        optimizer = build.build_optimizer(config, model)
        step = tf.Variable(0, dtype=tf.int64)
    loop = build.build_train_loop(
        config, model, optimizer, iter(batches), step, strategy
    )
    loop.train(2)
    values = loop.take_chunk().values[:, 0]
    with strategy.scope():
        fitted = PretrainingModel(config)
    fitted.compile()
    history = fitted.fit(batches, verbose=0).history
    differences = [
        float(np.abs(variable.numpy() - other.numpy()).max())
        for variable, other in zip(
            model.variables, fitted.variables, strict=True
        )
    ]
    return {
        "largest_difference": max(differences),
        "loss": history["loss"][0],
        "loop_loss": float(values.mean()),
    }


def main():
    two = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    assert two.num_replicas_in_sync == 2
    results = {
        "fit": [fit(tf.distribute.OneDeviceStrategy("/cpu:0")), fit(two)],
        "dropout": dropout(two),
        "pretraining": pretraining(two, sys.argv[1]),
    }
    print("RESULT" + json.dumps(results))


if __name__ == "__main__":
    main()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fits a user's model on one device and on two; prints the results.

A program of its own: virtual devices must be made before TensorFlow starts.
"""

import json

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.keras import Encoder

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)


def fit(strategy, dropout):
    with strategy.scope():
        encoder = Encoder(
            200,
            seed=3,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            initializer_range=0.3,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        ids = tf_keras.Input([8], dtype="int32")
        head = tf_keras.layers.Dense(
            3, kernel_initializer=tf_keras.initializers.GlorotUniform(seed=1)
        )
        model = tf_keras.Model(ids, head(encoder(ids)["pooled_output"]))
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf_keras.optimizers.AdamW(1e-3), loss)
    rng = np.random.default_rng(0)
    inputs, labels = rng.integers(5, 200, [16, 8]), rng.integers(0, 3, [16])
    history = model.fit(
        inputs, labels, batch_size=4, epochs=2, shuffle=False, verbose=0
    )
    weights = [v.numpy().tolist() for v in model.trainable_weights]
    return {"loss": history.history["loss"], "weights": weights}


def main():
    one = fit(tf.distribute.OneDeviceStrategy("/cpu:0"), 0.0)
    mirrored = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    two = fit(mirrored, 0.0)
    two["with_dropout"] = fit(mirrored, 0.1)["loss"]
    print("RESULT" + json.dumps([one, two]))


if __name__ == "__main__":
    main()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes with one device and with two; prints both results.

A program of its own: virtual devices must be made before TensorFlow starts.
"""

import io
import json
import sys

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import model, runner
from electra_tf.training.summaries import Console


def main():
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    model.DROPOUT_RATE = 0.0  # Each device draws its own.
    results = []
    for strategy, parts in (
        ("one_device", 1),
        ("mirrored", 1),
        ("mirrored", 2),
    ):
        config = FinetuningConfig.create(
            "m",
            sys.argv[1],
            **json.loads(sys.argv[2]),
            distribution_strategy=strategy,
            gradient_accumulation_steps=parts,
            overwrite=True,
        )
        found = runner.run(config, Console(io.StringIO()))
        results.append(found["trials"][0]["results"])
    print("RESULT" + json.dumps(results))


if __name__ == "__main__":
    main()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A program that kills itself at `DIES_AFTER`, or runs on two devices."""

import json
import os
import pathlib
import runpy
import signal
import sys

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.finetuning import heads
from electra_tf.finetuning import runner as finetuning
from electra_tf.pretraining import runner as pretraining
from electra_tf.pretraining import unigram
from electra_tf.training import logs

# Strategy and count of micro-batches, by the name of the run.
WAYS = {
    "one": ("one_device", 1),
    "two": ("mirrored", 1),
    "cut": ("mirrored", 2),
}


def die_after(step):
    """Kill this process within the row after that of a step."""
    write = logs.Log.write

    def write_or_die(self, at, values):
        write(self, at, values)
        if at == step:
            with open(self._path, "a") as file:
                file.write('{"step": 14, "lo')
            os.kill(os.getpid(), signal.SIGKILL)

    logs.Log.write = write_or_die


def main():
    heads.DROPOUT_RATE = 0.0
    unigram.count_tokens.__defaults__ = (100,)  # as in conftest.py
    if "DIES_AFTER" in os.environ:
        die_after(int(os.environ["DIES_AFTER"]))
        is_task = any('"task_names"' in word for word in sys.argv)
        name = "run_finetuning.py" if is_task else "run_pretraining.py"
        sys.argv[0] = str(pathlib.Path(__file__).resolve().parents[2] / name)
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

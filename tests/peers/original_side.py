# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Jobs of the original google-research/electra, run by its own Python.

Usage: PYTHON original_side.py FOLDER JOBS.json

FOLDER is a copy of the original that runs. Each job is a list of the name of a
function below and its arguments.
"""

import argparse
import importlib
import json
import os
import random
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, sys.argv[1])
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
module = importlib.import_module
GROUP = tf.group


def build(program, seed, **flags):
    """Build records; process i draws from seed + i."""
    listed = tf.io.gfile.listdir
    # The file system's order, which is shuffled, differs between machines.
    tf.io.gfile.listdir = lambda path: sorted(listed(path))
    for index in range(flags["num_processes"]):
        random.seed(seed + index)
        module(program).write_examples(index, argparse.Namespace(**flags))


def pretrain(name, data_dir, draws, hparams):
    """Pre-train with `draws` as masked positions, reading in file order.

    [MASK] replaces every masked token, the likeliest token is the sample, and
    the learning rate is read before the step is counted.
    """

    def categorical(logits, count, dtype):
        del count
        rows = tf.ones([tf.shape(logits)[0], 1], dtype)
        return rows * tf.constant([draws], dtype)

    def group(*done, name=None):
        if isinstance(done[-1], list):  # [increment of the step]
            done[-1][0].op._add_control_input(done[0])
        return GROUP(*done, name=name)

    tf.random.categorical, tf.group = categorical, group
    tf.random.uniform = lambda shape, **_: tf.fill(shape, 0.5)
    tf.data.Dataset.shuffle = lambda self, *_, **__: self
    # With debug the original would delete the run that it continues.
    module("util.utils").rmkdir = lambda path: None
    config = module("configure_pretraining").PretrainingConfig
    module("run_pretraining").train_or_eval(config(name, data_dir, **hparams))


def finetune(name, data_dir, hparams):
    """Fine-tune, or evaluate only, as the original's program does."""
    config = module("configure_finetuning").FinetuningConfig
    module("run_finetuning").run_finetuning(config(name, data_dir, **hparams))


def read_predictions(path):
    """Read test predictions as the original does; write them as JSON."""
    utils = module("util.utils")
    predictions = utils.load_pickle(path)
    plain = {str(key): value.tolist() for key, value in predictions.items()}
    utils.write_json(plain, os.path.splitext(path)[0] + ".json")


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        for function, arguments in json.load(file):
            globals()[function](**arguments)

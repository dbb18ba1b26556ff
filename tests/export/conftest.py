# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny models with random weights, exported and run in another process."""

import functools
import os
import pickle
import subprocess
import sys

import pytest

# The other process imports two packages and none of this project. Each line of
# its standard input has three paths: SavedModel, inputs and outputs.
CLIENT = """
import pickle, sys
import tensorflow as tf
import tensorflow_text
assert not any(m.startswith(("electra_tf", "configure", "tf_keras"))
               for m in sys.modules), "not a fresh process"
for line in sys.stdin:
    folder, inputs_path, outputs_path = line.rstrip().split("|")
    loaded = tf.saved_model.load(folder)
    answers = []
    for signature, inputs in pickle.load(open(inputs_path, "rb")):
        tensors = {
            name: tf.constant(value, tf.string, [len(value)])
            if isinstance(value, list) else tf.constant(value)
            for name, value in inputs.items()
        }
        outputs = loaded.signatures[signature](**tensors)
        answers.append({name: value.numpy() for name, value in outputs.items()})
    pickle.dump(answers, open(outputs_path, "wb"))
    print("done", flush=True)
"""


def as_numpy(outputs):
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.fixture(scope="session")
def finetuned_folder(finished_runs, roughen, long_sizes):
    """Return a factory of trials' folders: `finetuned_folder("reviews")`."""
    sizes = long_sizes | {"num_hidden_layers": 1}
    # Graphs return labels as bytes, and one of these is not ASCII.
    labels = {"reviews": ["bad", "good", "Übermaß"]}
    return finished_runs(roughen, labels, model_hparam_overrides=sizes)


@pytest.fixture(scope="session")
def finetuned_module(finetuned_folder):
    """Return a factory of models and modules: `finetuned_module("pairs")`."""

    @functools.cache
    def make(name, **hparams):
        from electra_tf.export.saved_model import make_task_module
        from electra_tf.prediction.loading import load_finetuned

        loaded = load_finetuned(finetuned_folder(name, **hparams))
        return loaded, make_task_module(loaded)

    return make


@pytest.fixture(scope="session")
def ask_elsewhere(tmp_path_factory):
    """Return a function that runs SavedModels in another process.

    The packages of this project are not on its path.
    """
    directory = tmp_path_factory.mktemp("elsewhere")
    inputs_path, outputs_path = directory / "in.pkl", directory / "out.pkl"
    (directory / "client.py").write_text(CLIENT)
    client = subprocess.Popen(
        [sys.executable, str(directory / "client.py")],
        cwd=directory,
        env={n: v for n, v in os.environ.items() if n != "PYTHONPATH"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(folder, batches):
        """Return the outputs of [(signature, {name: int32 or bytes})]."""
        inputs_path.write_bytes(pickle.dumps(batches))
        client.stdin.write(f"{folder}|{inputs_path}|{outputs_path}\n")
        client.stdin.flush()
        assert client.stdout.readline() == "done\n", "see standard error"
        return pickle.loads(outputs_path.read_bytes())

    yield ask
    client.stdin.close()
    assert client.wait(60) == 0

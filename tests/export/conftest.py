# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny models with random weights, exported once and asked elsewhere."""

import functools
import os
import pickle
import subprocess
import sys

import pytest

# What the other process runs: two packages and files, nothing of ours. It
# reads folder, questions and answers from its standard input, line by line.
CLIENT = """
import pickle, sys
import tensorflow as tf
import tensorflow_text
assert not any(m.startswith(("electra_tf", "configure", "tf_keras"))
               for m in sys.modules), "not a fresh process"
for line in sys.stdin:
    folder, asked, answered = line.rstrip().split("|")
    loaded = tf.saved_model.load(folder)
    answers = []
    for signature, inputs in pickle.load(open(asked, "rb")):
        tensors = {
            name: tf.constant(value, tf.string, [len(value)])
            if isinstance(value, list) else tf.constant(value)
            for name, value in inputs.items()
        }
        found = loaded.signatures[signature](**tensors)
        answers.append({name: value.numpy() for name, value in found.items()})
    pickle.dump(answers, open(answered, "wb"))
    print("done", flush=True)
"""


def as_numpy(outputs):
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.fixture(scope="session")
def finetuned_folder(finished_runs, roughen, long_sizes):
    """A factory of folders of trials of one block: `("reviews")`."""
    sizes = long_sizes | {"num_hidden_layers": 1}
    # Labels leave as bytes; not all of them are ASCII.
    labels = {"reviews": ["bad", "good", "Übermaß"]}
    return finished_runs(roughen, labels, model_hparam_overrides=sizes)


@pytest.fixture(scope="session")
def finetuned_module(finetuned_folder):
    """A factory of models and their modules: `finetuned_module("reviews")`."""

    @functools.cache
    def make(name, **hparams):
        from electra_tf.export.saved_model import make_task_module
        from electra_tf.prediction.loading import load_finetuned

        loaded = load_finetuned(finetuned_folder(name, **hparams))
        return loaded, make_task_module(loaded)

    return make


@pytest.fixture(scope="session")
def ask_elsewhere(tmp_path_factory):
    """Asks SavedModels in a process without our packages on its path."""
    place = tmp_path_factory.mktemp("elsewhere")
    asked, answered = place / "asked.pkl", place / "answered.pkl"
    (place / "client.py").write_text(CLIENT)
    client = subprocess.Popen(
        [sys.executable, str(place / "client.py")],
        cwd=place,
        env={n: v for n, v in os.environ.items() if n != "PYTHONPATH"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(folder, batches):
        """From [(signature, {input: int32 array or list of bytes})]."""
        asked.write_bytes(pickle.dumps(batches))
        client.stdin.write(f"{folder}|{asked}|{answered}\n")
        client.stdin.flush()
        assert client.stdout.readline() == "done\n", "see standard error"
        return pickle.loads(answered.read_bytes())

    yield ask
    client.stdin.close()
    assert client.wait(60) == 0

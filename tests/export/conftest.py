# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny models with random weights, exported once and asked elsewhere."""

import functools
import os
import pickle
import shutil
import subprocess
import sys

import pytest

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 512,
}
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


@pytest.fixture(scope="session")
def finetuned_folder(finished_runs):
    """A factory of trials' folders: `finetuned_folder("reviews")`."""
    # Labels leave as bytes; not all of them are ASCII.
    labels = {"reviews": ["bad", "good", "Übermaß"]}
    return finished_runs(roughen, labels, model_hparam_overrides=SIZES)


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


def roughen(variables):
    """Makes fresh weights large enough that answers differ."""
    import tensorflow as tf

    random = tf.random.Generator.from_seed(3)
    for variable in variables:
        variable.assign_add(random.normal(variable.shape, stddev=0.3))


@pytest.fixture(scope="session")
def pretrained_folder(tmp_path_factory, tiny_vocab):
    """A factory of pre-training runs' folders, by hparams."""
    made = {}

    def make(**hparams):
        key = repr(hparams)
        if key not in made:
            directory = tmp_path_factory.mktemp("pretrained")
            made[key] = _write_pretraining(directory, tiny_vocab, hparams)
        return made[key]

    return make


def _write_pretraining(directory, vocab, hparams):
    from configure.pretraining import PretrainingConfig
    from electra_tf.checkpoints import electra_config, tf2
    from electra_tf.checkpoints.weights import ModelWeights
    from electra_tf.pretraining.model import PretrainingModel
    from electra_tf.training import checkpointing

    settings = {
        "vocab_file": vocab,
        "vocab_size": 200,
        "embedding_size": 8,
        "max_seq_length": 512,
        "model_hparam_overrides": SIZES,
        "generator_hidden_size": 0.5,
    }
    config = PretrainingConfig.create(
        "tiny", str(directory), **{**settings, **hparams}
    )
    model = PretrainingModel(config)
    roughen(model.variables)
    folder = str(directory / "model")
    weights = ModelWeights(tf2.variables_by_name(model.variables), 7, folder)
    tf2.write_native(weights, os.path.join(folder, "model.ckpt-7"))
    checkpointing.write_config(folder, config.to_json())
    electra_config.write_electra_config(folder, config.as_dict())
    shutil.copy(vocab, os.path.join(folder, "vocab.txt"))
    return folder


@pytest.fixture(scope="session")
def ask_elsewhere(tmp_path_factory):
    """Asks SavedModels in a process without our packages on its path."""
    place = tmp_path_factory.mktemp("elsewhere")
    asked, answered = place / "asked.pkl", place / "answered.pkl"
    (place / "client.py").write_text(CLIENT)
    client = subprocess.Popen(
        [sys.executable, "-P", str(place / "client.py")],
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

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny models with random weights, exported once and asked elsewhere."""

import os
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
# What the other process runs: two packages and files, nothing of ours.
CLIENT = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
assert not any(m.startswith(("electra_tf", "configure", "tf_keras"))
               for m in sys.modules), "not a fresh process"
folder, asked, answered = sys.argv[1:]
loaded = tf.saved_model.load(folder)
questions = np.load(asked, allow_pickle=False)
batches = [(signature, {}) for signature in questions["signatures"]]
for key in questions.files:
    if "|" in key:
        number, name = key.split("|")
        batches[int(number)][1][name] = questions[key]
answers = {}
for number, (signature, inputs) in enumerate(batches):
    tensors = {
        name: tf.constant(value)
        for name, value in inputs.items() if value.dtype == np.int32
    }
    for name, value in inputs.items():
        # Strings come as all their bytes and the size of each.
        if value.dtype == np.uint8:
            texts, at = [], 0
            for size in inputs[name + ":sizes"]:
                texts.append(value[at:at + size].tobytes())
                at += size
            tensors[name] = tf.constant(texts, tf.string, [len(texts)])
    tensors = {n: t for n, t in tensors.items() if ":" not in n}
    for name, value in loaded.signatures[signature](**tensors).items():
        value = value.numpy()
        if isinstance(value, bytes):
            value = np.array(value, object)
        if value.dtype == object:
            value = np.array([v.hex() for v in value.ravel()]).reshape(
                value.shape)
        answers[f"{number}|{name}"] = value
np.savez(answered, **answers)
"""


@pytest.fixture(scope="session")
def finetuned_folder(finished_runs):
    """A factory of trials' folders: `finetuned_folder("reviews")`."""
    # Labels leave as bytes; not all of them are ASCII.
    labels = {"reviews": ["bad", "good", "Übermaß"]}
    return finished_runs(roughen, labels, model_hparam_overrides=SIZES)


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


@pytest.fixture
def ask_elsewhere(tmp_path):
    """Asks a SavedModel in a process without our packages on its path."""

    def ask(folder, batches):
        """From [(signature, {input: int32 array or list of bytes})]."""
        import numpy as np

        asked = {"signatures": np.array([name for name, _ in batches])}
        for number, (_, inputs) in enumerate(batches):
            for name, value in inputs.items():
                key = f"{number}|{name}"
                if isinstance(value, list):
                    asked[f"{key}:sizes"] = np.array(
                        [len(text) for text in value], np.int32
                    )
                    value = np.frombuffer(b"".join(value), np.uint8)
                asked[key] = value
        np.savez(tmp_path / "asked.npz", **asked)
        (tmp_path / "client.py").write_text(CLIENT)
        command = [
            sys.executable,
            "-P",
            str(tmp_path / "client.py"),
            str(folder),
            str(tmp_path / "asked.npz"),
            str(tmp_path / "answered.npz"),
        ]
        environment = {
            name: value
            for name, value in os.environ.items()
            if name != "PYTHONPATH"
        }
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        answers = [{} for _ in batches]
        with np.load(tmp_path / "answered.npz") as found:
            for key in found.files:
                number, name = key.split("|")
                value = found[key]
                if value.dtype.kind == "U":
                    texts = [bytes.fromhex(v) for v in value.ravel()]
                    value = np.array(texts, object).reshape(value.shape)
                answers[int(number)][name] = value
        return answers

    return ask

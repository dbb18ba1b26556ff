# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of given shapes, with random values."""

import json
import os
import pathlib
import zlib

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from configure.errors import UserError
from electra_tf.checkpoints.huggingface_layout import Network
from electra_tf.checkpoints.huggingface_reader import open_huggingface
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import (
    SLOT_SUFFIXES,
    STEP_NAME,
    MemoryWeights,
    TensorSpec,
    Weights,
    with_description,
)
from tests.conftest import ROOT, read_json

STEP = 1234


class RandomWeights(Weights):
    """Tensors drawn when they are read, each from a seed of its name."""

    def __init__(self, shapes, slots=True, step=STEP):
        suffixes = ("", *SLOT_SUFFIXES) if slots else ("",)
        specs = {
            name + suffix: TensorSpec(tuple(shape), np.dtype(np.float32))
            for name, shape in shapes.items()
            for suffix in suffixes
        }
        if step is not None:
            specs[STEP_NAME] = TensorSpec((), np.dtype(np.int64))
        self._step = step
        super().__init__("random", "memory", specs)

    def read(self, name):
        if name == STEP_NAME:
            return np.asarray(self._step, np.int64)
        random = np.random.default_rng(zlib.crc32(name.encode()))
        return random.standard_normal(self.specs[name].shape, np.float32)


def same_tensors(weights, expected):
    """Assert that names, types, shapes and every bit are equal."""
    if isinstance(expected, dict):
        expected = MemoryWeights(expected)
    assert weights.specs == expected.specs
    for name in expected.specs:
        value, other = weights.read(name), np.asarray(expected.read(name))
        assert value.dtype == other.dtype, name
        assert value.tobytes() == other.tobytes(), name


@pytest.fixture(scope="session")
def all_configs(golden_dir):
    """Return the original's variables by configuration: shapes by name."""
    configs = read_json(golden_dir / "variables_all_configs.json")
    for config in configs.values():
        config["shapes"] = {
            v["name"]: v["shape"]
            for v in config["creation_order_model_variables"]
            if v["name"] != STEP_NAME
        }
    return configs


@pytest.fixture(scope="session")
def of_config(all_configs):
    """Return random weights, with the large axes divided by a factor."""

    def make(name, factor=1, **options):
        def shrink(size):
            return max(1, size // factor) if size > 8 else size

        shapes = all_configs[name]["shapes"].items()
        shapes = {name: list(map(shrink, shape)) for name, shape in shapes}
        return RandomWeights(shapes, **options)

    return make


# Prefixes of the configurations that a fixture is parametrized with.
PREFIXES = {
    "config_name": "",
    "pretrain_name": "pretrain/",
    "finetune_name": "finetune/",
    "built_name": ("pretrain/small", "pretrain/debug"),
}

# Tests of all others are marked slow.
QUICK = ("pretrain/small", "finetune/small_cola")


def pytest_generate_tests(metafunc):
    root = os.environ.get("ELECTRA_TF_REFERENCE", ROOT.parent / "shared")
    path = pathlib.Path(root) / "golden" / "variables_all_configs.json"
    for fixture in PREFIXES.keys() & metafunc.fixturenames:
        names = read_json(path) if path.is_file() else []
        names = [name for name in names if name.startswith(PREFIXES[fixture])]
        parameters = [
            name
            if name in QUICK
            else pytest.param(name, marks=pytest.mark.slow)
            for name in names
        ]
        metafunc.parametrize(fixture, parameters)


SIZES = {
    "vocab_size": 210,
    "type_vocab_size": 2,
    "max_position_embeddings": 12,
    "embedding_size": 4,
    "hidden_size": 6,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
}


class HuggingFaceFolder(type(pathlib.Path())):
    """A path whose model tests write, read and damage."""

    def write(self, values, vocab_file=None, hparams=None, **options):
        """Write arrays or weights, with hparams and vocabulary if passed."""
        if isinstance(values, dict):
            values = MemoryWeights(values)
        hparams = {**values.hparams, **(hparams or {})}
        vocab_file = vocab_file or values.vocab_file
        weights = with_description(values, hparams, vocab_file)
        return write_huggingface(weights, str(self), **options)

    def write_refused(self, values, **options):
        """Return the error's message; no file may be left behind."""
        with pytest.raises(UserError) as caught:
            self.write(values, **options)
        assert not self.exists()
        return str(caught.value)

    def weights(self):
        return open_huggingface(str(self))

    def refused(self):
        with pytest.raises(UserError) as caught:
            self.weights()
        return str(caught.value)

    def without_digests(self):
        """Remove the digests, so that tests may change files."""
        for path in self.glob("**/digests.json"):
            path.unlink()
        return self

    def tensors(self):
        return load_file(self / "model.safetensors")

    def store(self, values):
        save_file(values, self / "model.safetensors", {"format": "pt"})

    def config(self):
        return read_json(self / "config.json")

    def update_config(self, values):
        config = {**self.config(), **values}
        (self / "config.json").write_text(json.dumps(config))


def arrays(network, seed=0, labels=3, **sizes):
    """Return random variables of a network."""
    sizes = {**SIZES, "number of labels": labels, **sizes}
    random = np.random.RandomState(seed)
    return {
        name: random.randn(*pair.variable_shape(sizes)).astype(np.float32)
        for pair in network.pairs(sizes)
        for name in pair.variables
    }


@pytest.fixture(scope="session")
def discriminator():
    return arrays(Network("ElectraForPreTraining"))


@pytest.fixture(scope="session")
def whole(discriminator):
    """Return the variables of a generator and a discriminator."""
    network = Network("ElectraForMaskedLM", "generator")
    narrow = {"hidden_size": 5, "intermediate_size": 20}
    return {**arrays(network, seed=1, **narrow), **discriminator}


@pytest.fixture
def single(tmp_path, discriminator):
    """Return a Hugging Face folder of a discriminator."""
    folder = HuggingFaceFolder(tmp_path / "one")
    folder.write(discriminator, part="discriminator")
    return folder.without_digests()


@pytest.fixture
def both(tmp_path, whole):
    """Return a Hugging Face folder of a generator and a discriminator."""
    folder = HuggingFaceFolder(tmp_path / "both")
    folder.write(whole)
    return folder.without_digests()


@pytest.fixture
def out(tmp_path):
    return HuggingFaceFolder(tmp_path / "out")

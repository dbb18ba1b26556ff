# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints by shape: random values that nobody has to keep."""

import json
import pathlib
import zlib

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from configure.errors import UserError
from electra_tf.checkpoints.huggingface_names import Network
from electra_tf.checkpoints.huggingface_reader import open_huggingface
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import (
    SLOT_SUFFIXES,
    STEP_NAME,
    MemoryWeights,
    TensorSpec,
    Weights,
)

STEP = 1234


class RandomWeights(Weights):
    """Every tensor is drawn when it is read, from a seed of its name."""

    def __init__(self, shapes, slots=True, step=STEP, path="random"):
        suffixes = ("", *SLOT_SUFFIXES) if slots else ("",)
        specs = {
            name + suffix: TensorSpec(tuple(shape), np.dtype(np.float32))
            for name, shape in shapes.items()
            for suffix in suffixes
        }
        if step is not None:
            specs[STEP_NAME] = TensorSpec((), np.dtype(np.int64))
        self._step = step
        super().__init__(path, "memory", specs)

    def read(self, name):
        if name == STEP_NAME:
            return np.asarray(self._step, np.int64)
        random = np.random.default_rng(zlib.crc32(name.encode()))
        return random.standard_normal(self.specs[name].shape, np.float32)


def scaled_down(shape, factor):
    """Divides the large axes, all by one factor."""
    return [max(1, size // factor) if size > 8 else size for size in shape]


def assert_same_tensors(found, expected):
    assert found.specs == expected.specs
    for name in expected.specs:
        value, wanted = found.read(name), np.asarray(expected.read(name))
        assert value.dtype == wanted.dtype, name
        assert value.tobytes() == wanted.tobytes(), name


@pytest.fixture(scope="session")
def random_weights():
    return RandomWeights


@pytest.fixture(scope="session")
def same_tensors():
    return assert_same_tensors


@pytest.fixture(scope="session")
def smaller():
    return scaled_down


@pytest.fixture(scope="session")
def all_configs(golden_dir):
    """Variables of every configuration of the original: shapes by name."""
    text = (golden_dir / "variables_all_configs.json").read_text()
    configs = json.loads(text)
    assert sorted(configs) == sorted(CONFIGS)
    for config in configs.values():
        config["shapes"] = {
            v["name"]: v["shape"]
            for v in config["creation_order_model_variables"]
            if v["name"] != STEP_NAME
        }
    return configs


# Known here, so that tests can be told apart without the file.
CONFIGS = [
    "pretrain/small",
    "pretrain/base",
    "pretrain/large",
    "pretrain/base_paper_settings",
    "pretrain/large_paper_settings",
    "pretrain/small_electric",
    "pretrain/small_electric_with_electra_objective_left_True",
    "pretrain/small_untied_generator_False",
    "pretrain/small_mlm_electra_objective_False",
    "pretrain/small_untied_generator_embeddings",
    "pretrain/small_uniform_generator",
    "pretrain/small_two_tower_generator_electra",
    "pretrain/small_electric_untied_generator_embeddings",
    "pretrain/debug_small",
    "pretrain/debug_base",
    *(
        f"finetune/{size}_{task}"
        for size in ("small", "base", "large")
        for task in ("cola", "sts", "squad", "chunk")
    ),
    "finetune/small_mnli",
    "finetune/small_squadv1",
    "finetune/small_squad_nojoint",
    "finetune/small_squad_noanswerable",
    "finetune/small_squad_answerable_no_start",
]


def pytest_generate_tests(metafunc):
    if "config_name" in metafunc.fixturenames:
        metafunc.parametrize("config_name", CONFIGS)
    for kind in ("pretrain", "finetune"):
        if f"{kind}_name" in metafunc.fixturenames:
            names = [name for name in CONFIGS if name.startswith(kind)]
            metafunc.parametrize(f"{kind}_name", names)


# --- Hugging Face folders ----------------------------------------------------

SIZES = {
    "vocab_size": 210,
    "type_vocab_size": 2,
    "max_position_embeddings": 12,
    "embedding_size": 4,
    "hidden_size": 6,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "number of labels": 3,
}


class HuggingFaceFolder(type(pathlib.Path())):
    """A path whose model can be written, read and spoilt."""

    def write(self, values, **options):
        write_huggingface(MemoryWeights(values), str(self), **options)

    def write_refused(self, values, **options):
        """What is said instead of writing; nothing is left behind."""
        with pytest.raises(UserError) as caught:
            self.write(values, **options)
        assert not self.exists()
        return str(caught.value)

    def weights(self):
        return open_huggingface(str(self))

    def refused(self):
        """What is said instead of opening."""
        with pytest.raises(UserError) as caught:
            self.weights()
        return str(caught.value)

    def tensors(self):
        return load_file(self / "model.safetensors")

    def store(self, values):
        save_file(values, self / "model.safetensors", {"format": "pt"})

    def set_config(self, **values):
        path = self / "config.json"
        config = {**json.loads(path.read_text()), **values}
        path.write_text(json.dumps(config))


def random_arrays(part, seed=0, **sizes):
    sizes = {**SIZES, **sizes}
    random = np.random.RandomState(seed)
    return {
        name: random.randn(*pair.shape(sizes)).astype(np.float32)
        for pair in part.pairs(sizes)
        for name in pair.ours
    }


def assert_holds(read, values):
    assert set(read.specs) == set(values)
    for name, value in values.items():
        assert read.read(name).dtype == np.float32
        np.testing.assert_array_equal(read.read(name), value, name)


@pytest.fixture(scope="session")
def hf_folder():
    return HuggingFaceFolder


@pytest.fixture(scope="session")
def arrays():
    """A factory of a part's variables; two layers, the sizes may be given."""
    return random_arrays


@pytest.fixture(scope="session")
def assert_values():
    """Asserts that weights are these, all of them and in float32."""
    return assert_holds


@pytest.fixture(scope="session")
def discriminator():
    """The variables of a discriminator."""
    return random_arrays(Network("ElectraForPreTraining"))


@pytest.fixture(scope="session")
def whole(discriminator):
    """The variables of a generator and a discriminator."""
    part = Network("ElectraForMaskedLM", "generator", "electra")
    narrow = {"hidden_size": 5, "intermediate_size": 20}
    return {**random_arrays(part, seed=1, **narrow), **discriminator}


@pytest.fixture
def one(tmp_path, discriminator):
    """A Hugging Face folder of a discriminator."""
    folder = HuggingFaceFolder(tmp_path / "one")
    folder.write(discriminator, part="discriminator")
    return folder


@pytest.fixture
def both(tmp_path, whole):
    """A Hugging Face folder of a generator and a discriminator."""
    folder = HuggingFaceFolder(tmp_path / "both")
    folder.write(whole)
    return folder

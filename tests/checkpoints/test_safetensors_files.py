# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: the format's own library reads what is written."""

import json
import subprocess
import sys

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_writer as files
from electra_tf.checkpoints.weights import TensorSpec

FLOAT32 = np.dtype(np.float32)


def specs_of(values):
    return {n: TensorSpec(v.shape, FLOAT32) for n, v in values.items()}


@hypothesis.given(
    shapes=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8).filter(
            lambda name: name != "__metadata__"
        ),
        st.lists(st.integers(0, 4), max_size=3),
        max_size=6,
    )
)
def test_the_library_reads_what_is_written(tmp_path_factory, shapes):
    path = str(tmp_path_factory.mktemp("files") / "model.safetensors")
    random = np.random.RandomState(0)
    values = {
        name: np.asarray(random.randn(*shape), np.float32)
        for name, shape in shapes.items()
    }
    files.write_safetensors(path, specs_of(values), values.__getitem__)
    read = load_file(path)
    assert set(read) == set(values)
    for name, value in values.items():
        assert read[name].tobytes() == value.tobytes()
        assert read[name].shape == value.shape
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt"}


def test_special_values_and_transposed_ones_keep_their_bits(tmp_path):
    path = str(tmp_path / "m.safetensors")
    matrix = np.array([[np.nan, -0.0], [np.inf, 1e-45], [1, 2]], np.float32).T
    specs = {"a": TensorSpec((2, 3), FLOAT32)}
    files.write_safetensors(path, specs, lambda _: matrix)
    assert load_file(path)["a"].tobytes() == matrix.tobytes()


@pytest.mark.parametrize(
    "value", [np.zeros([3], np.float32), np.zeros([2], np.float64)]
)
def test_values_that_break_the_promise_are_refused(value, tmp_path):
    specs = {"a": TensorSpec((2,), FLOAT32)}
    with pytest.raises(ValueError, match="promised"):
        files.write_safetensors(str(tmp_path / "m"), specs, lambda _: value)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    path = str(tmp_path / "no" / "m.safetensors")
    with pytest.raises(UserError, match=f"{path}: cannot be written"):
        files.write_safetensors(path, {}, lambda _: None)


MEMORY = """
import json, resource, sys
import numpy as np
from electra_tf.checkpoints.huggingface_names import Network
from electra_tf.checkpoints.huggingface_reader import open_huggingface
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import TensorSpec, Weights

sizes = dict(vocab_size=30522, type_vocab_size=2, max_position_embeddings=512)
sizes |= dict(embedding_size=1024, hidden_size=1024, intermediate_size=4096)
sizes["num_hidden_layers"] = 24
pairs = Network("ElectraForPreTraining").pairs(sizes)

class Large(Weights):
    def __init__(self):
        specs = {
            name: TensorSpec(pair.shape(sizes), np.dtype(np.float32))
            for pair in pairs for name in pair.ours
        }
        super().__init__("large", "memory", specs)

    def read(self, name):
        numbers = np.random.default_rng(len(name))
        return numbers.standard_normal(self.specs[name].shape, np.float32)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

large, folder = Large(), sys.argv[1]
start = peak()
write_huggingface(large, folder, part="discriminator")
written = peak()
read = open_huggingface(folder)
equal = all(np.array_equal(value, large.read(name)) for name, value in read)
size = sum(spec.size_in_bytes for spec in large.specs.values())
print(json.dumps({
    "equal": equal, "bytes": size, "start": start, "write": written,
    "read": peak(),
}))
"""


@pytest.mark.heavy
def test_a_large_model_passes_through_little_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    print(result)
    assert result["equal"]
    assert result["bytes"] > 1.3e9  # 335 million parameters
    # A quarter is far below the bound of 2.5 times: one table is 125 MB.
    assert result["write"] - result["start"] < 0.25 * result["bytes"]
    assert result["read"] - result["start"] < 0.5 * result["bytes"]

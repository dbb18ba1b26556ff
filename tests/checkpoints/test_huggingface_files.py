# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of a Hugging Face folder: tensors and tokenizer."""

import json
import pathlib
import subprocess
import sys

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.huggingface_writer import write_safetensors
from electra_tf.checkpoints.weights import TensorSpec
from electra_tf.text.tokenization import load_vocab

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
    # All bits there are: NaN, infinite and denormal numbers, too.
    values = {
        name: random.randint(0, 256, [*shape, 4], np.uint8)
        .view(np.float32)
        .reshape(shape)
        .T
        for name, shape in shapes.items()
    }
    write_safetensors(path, specs_of(values), values.__getitem__)
    read = load_file(path)
    assert set(read) == set(values)
    for name, value in values.items():
        assert read[name].tobytes() == value.tobytes()
        assert read[name].shape == value.shape
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt"}


MEMORY = """
import json, resource, sys
import numpy as np
from electra_tf.checkpoints.huggingface_layout import Network
from electra_tf.checkpoints.huggingface_reader import open_huggingface
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import TensorSpec, Weights

sizes = dict(vocab_size=30522, type_vocab_size=2, max_position_embeddings=512)
sizes |= dict(embedding_size=1024, hidden_size=1024, intermediate_size=4096)
sizes["num_hidden_layers"] = 24
specs = {
    name: TensorSpec(pair.shape(sizes), np.dtype(np.float32))
    for pair in Network("ElectraForPreTraining").pairs(sizes)
    for name in pair.ours
}

class Large(Weights):
    def read(self, name):
        numbers = np.random.default_rng(len(name))
        return numbers.standard_normal(self.specs[name].shape, np.float32)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

large, folder, start = Large("large", "memory", specs), sys.argv[1], peak()
write_huggingface(large, folder, part="discriminator")
result = {"write": peak() - start}
read = open_huggingface(folder)
result["equal"] = all(
    np.array_equal(value, large.read(name)) for name, value in read
)
result["bytes"] = sum(spec.size_in_bytes for spec in specs.values())
print(json.dumps({**result, "read": peak() - start}))
"""


@pytest.mark.heavy
def test_a_large_model_passes_through_little_memory(tmp_path):
    command = [sys.executable, "-c", MEMORY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True)
    result = json.loads(done.stdout)
    assert result["equal"]
    assert result["bytes"] > 1.3e9  # 335 million parameters
    # A quarter is far below the bound of 2.5 times: one table is 125 MB.
    assert result["write"] < 0.25 * result["bytes"]
    assert result["read"] < 0.5 * result["bytes"]


@pytest.fixture
def folder(tmp_path, tiny_vocab):
    """A folder with the tokenizer's files, made with given settings."""

    def make(**hparams):
        files = layout.tokenizer_files(load_vocab(tiny_vocab), hparams, 64)
        for name, content in files.items():
            (tmp_path / name).write_text(json.dumps(content))
        return tmp_path, files

    return make


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("strip", [True, False])
def test_settings_come_back(lower, strip, folder):
    path, files = folder(do_lower_case=lower, strip_accents=strip)
    stated, _ = layout.read_tokenizer(str(path))
    assert stated["do_lower_case"] is lower
    # Only a lower-casing tokenizer strips accents.
    assert stated.get("strip_accents", True) is (strip or not lower)
    config = files["tokenizer_config.json"]
    assert config["strip_accents"] is (lower and strip)
    normalizer = files["tokenizer.json"]["normalizer"]
    assert normalizer["lowercase"] is lower
    assert normalizer["strip_accents"] is (lower and strip)
    assert config["tokenizer_class"] == "ElectraTokenizer"
    assert config["model_max_length"] == 64
    special = files["special_tokens_map.json"]
    names = ("unk", "sep", "pad", "cls", "mask")
    assert special == {f"{n}_token": f"[{n.upper()}]" for n in names}
    assert special.items() <= config.items()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, []),
        ({"do_lower_case": False, "strip_accents": True}, ["strip_accents"]),
        ({"tokenize_chinese_chars": False}, ["tokenize_chinese_chars"]),
    ],
)
def test_settings_without_counterpart_are_said(config, said, tmp_path):
    assert layout.read_tokenizer(str(tmp_path)) == ({}, {})
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    _, notes = layout.read_tokenizer(str(tmp_path))
    assert list(notes) == [f"tokenizer_config.json: {name}" for name in said]


def test_a_vocabulary_only_in_json_is_said_and_can_be_written(
    folder, tiny_vocab, tmp_path
):
    path, _ = folder()
    _, notes = layout.read_tokenizer(str(path))
    assert "write_vocab" in notes["tokenizer.json"]
    out = tmp_path / "vocab.txt"
    layout.write_vocab(str(path), str(out))
    assert out.read_bytes() == pathlib.Path(tiny_vocab).read_bytes()
    assert not layout.read_tokenizer(str(path))[1]
    with pytest.raises(UserError, match="exists"):
        layout.write_vocab(str(path), str(out))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"type": "BPE", "vocab": {"a": 0}}, "no WordPiece vocabulary"),
        ({"type": "WordPiece", "vocab": {"a": 0, "b": 2}}, "gaps"),
        (None, "no WordPiece vocabulary"),
    ],
)
def test_other_vocabularies_are_refused(model, said, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
    with pytest.raises(UserError, match=said):
        layout.write_vocab(str(tmp_path), str(tmp_path / "vocab.txt"))

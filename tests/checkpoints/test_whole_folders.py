# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model's folder holds all that reading it needs; damage is not read."""

import contextlib
import json
import pathlib
import shutil

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.checkpoints import formats, tf1, tf2
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.text.tokenization import check_vocab


def read_all(folder):
    """Everything that a reader takes from a folder, as plain values."""
    weights = open_weights(str(folder))
    tensors = {name: value.tobytes() for name, value in weights}
    return tensors, check_vocab(weights.vocab_file)


def flip(content, other, random):
    place = random.integers(len(content))
    bit = bytes([content[place] ^ 1 << random.integers(8)])
    return content[:place] + bit + content[place + 1 :]


def cut(content, other, random):
    return content[: random.integers(len(content))]


def swap(content, other, random):
    """Puts the same model's file after other training there."""
    return other


@pytest.fixture
def pair(one, arrays, discriminator, tiny_vocab, tmp_path):
    """Two folders of one shape: other values, two tokens exchanged."""
    tokens = pathlib.Path(tiny_vocab).read_text().split("\n")
    tokens[-2], tokens[-3] = tokens[-3], tokens[-2]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    other = type(one)(tmp_path / "other")
    values = {name: value + 1 for name, value in discriminator.items()}
    one.write(discriminator, vocab_file=tiny_vocab, overwrite=True)
    other.write(values, vocab_file=str(tmp_path / "vocab.txt"))
    return one / "discriminator", other / "discriminator"


def test_none_of_110_damaged_copies_is_read_in_silence(pair):
    folder, other = pair
    whole, random = read_all(folder), np.random.default_rng(16)
    silent = []
    for number in range(110):
        name = ("model.safetensors", "vocab.txt")[number % 2]
        damage = (flip, flip, flip, cut, swap)[number % 5]
        path, content = folder / name, (folder / name).read_bytes()
        path.write_bytes(damage(content, (other / name).read_bytes(), random))
        try:
            read_all(folder)
            silent.append((number, damage.__name__, name))
        except UserError as error:
            assert f"{path}: another file, or damaged" in str(error)
        path.write_bytes(content)
    assert not silent
    assert read_all(folder) == whole


def test_damaged_digests_never_let_other_values_through(pair):
    folder, _ = pair
    whole, random = read_all(folder), np.random.default_rng(16)
    path = folder / "digests.json"
    content = path.read_bytes()
    for number in range(40):
        path.write_bytes((flip, cut)[number % 2](content, None, random))
        try:
            assert read_all(folder) == whole
        except UserError as error:
            assert "digests.json" in str(error)


def test_folders_without_digests_are_read(pair):
    whole = read_all(pair[0])
    (pair[0] / "digests.json").unlink()
    assert read_all(pair[0]) == whole


def test_a_vocabulary_is_found_where_settings_name_it(tiny_config, tmp_path):
    config = tiny_config()
    data = tmp_path / "data"
    folder = data / "models" / "tiny"
    weights = MemoryWeights({"electra/a": np.zeros([2], np.float32)})
    tf2.write_native(weights, str(folder / "model.ckpt-1"))
    vocab = data / "vocab.txt"
    shutil.copy(config.vocab_file, vocab)
    text = json.dumps({"model_size": "small", "vocab_file": str(vocab)})
    (folder / "config.json").write_text(text)
    assert open_weights(str(folder)).vocab_file == str(vocab)
    data.rename(tmp_path / "moved")
    found = open_weights(str(tmp_path / "moved" / "models" / "tiny"))
    assert pathlib.Path(found.vocab_file).samefile(tmp_path / "moved/vocab.txt")


@pytest.mark.parametrize("write", [tf1.write_tf1, tf2.write_native])
def test_what_goes_beside_comes_with_the_weights(write, tmp_path, tiny_vocab):
    class Broken(MemoryWeights):
        def read(self, name):
            if name == "electra/b":
                raise UserError("b cannot be read")
            return super().read(name)

    def complete():
        assert not list(folder.glob("m.index"))
        formats.complete_folder(str(folder), {}, tiny_vocab)

    folder = tmp_path / "new"
    values = {f"electra/{n}": np.zeros([2], np.float32) for n in "ab"}
    with pytest.raises(UserError, match="b cannot be read"):
        write(Broken(values), str(folder / "m"), complete=complete)
    assert not folder.exists() or not list(folder.iterdir())
    write(MemoryWeights(values), str(folder / "m"), complete=complete)
    beside = {"electra_config.json", "vocab.txt", "digests.json"}
    assert beside < {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("write", [tf1.write_tf1, tf2.write_native])
def test_tensorflow_s_own_checksums_tell_damage(write, tmp_path):
    random = np.random.default_rng(16)
    for name in ("a", "b"):  # Two steps of one run.
        value = random.standard_normal([40, 5]).astype(np.float32)
        write(MemoryWeights({"electra/a": value}), str(tmp_path / name))
    whole = dict(open_weights(str(tmp_path / "a")))["electra/a"].tobytes()
    for number in range(60):
        end = (".index", ".data-00000-of-00001")[number % 2]
        path = tmp_path / f"a{end}"
        content = path.read_bytes()
        other = (tmp_path / f"b{end}").read_bytes()
        damage = (flip, flip, cut, swap)[number // 2 % 4]
        path.write_bytes(damage(content, other, random))
        with contextlib.suppress(UserError):
            found = dict(open_weights(str(tmp_path / "a")))["electra/a"]
            assert found.tobytes() == whole, (number, damage, end)
        path.write_bytes(content)

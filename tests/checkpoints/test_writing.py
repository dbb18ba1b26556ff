# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints are written whole, every name and bit; damage is not read."""

import contextlib
import json
import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from configure.errors import UserError
from electra_tf.checkpoints import formats, tf1, tf2
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.text.vocabulary import check_vocab
from tests.checkpoints.conftest import RandomWeights, same_tensors
from tests.conftest import refused

SHAPES = {"electra/a": [3, 2], "electra/b": [], "generator/c": [5]}

NAMES = st.lists(
    st.from_regex(
        r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,11}(/[A-Za-z0-9_.-]{1,9}){0,3}",
        fullmatch=True,
    ),
    min_size=1,
    max_size=6,
    unique=True,
).filter(lambda names: "global_step" not in names)


def there_and_back(source, folder):
    """TF1 -> native -> TF1; returns the last, opened."""
    first, second = folder / "tf1" / "model.ckpt", folder / "model.ckpt"
    third = folder / "again" / "model.ckpt"
    tf1.write_tf1(source, str(first))
    tf2.write_native(tf1.open_tf1(str(first)), str(second))
    tf1.write_tf1(tf2.open_native(str(second)), str(third))
    return tf1.open_tf1(str(third))


@pytest.mark.slow
def test_recorded_ones_come_back_whole(golden_dir, tmp_path):
    files = [*golden_dir.glob("ckpt_*/*.index")]
    files += golden_dir.glob("train_finetune_*/*-5.index")
    files += golden_dir.glob("train_pretrain_electra/*.index")
    assert len(files) > 25
    for number, file in enumerate(files):
        source = tf1.open_tf1(str(file.with_suffix("")))
        same_tensors(there_and_back(source, tmp_path / str(number)), source)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pretrain/small", "finetune/small_cola"])
def test_tensorflow_1_restores_names(name, all_configs, of_config, tmp_path):
    source, names = of_config(name, 8), all_configs[name]
    names = names["all_global_variable_names_after_create_optimizer"]
    tf1.write_tf1(source, str(tmp_path / "model.ckpt-1234"))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {
            name: tf.compat.v1.get_variable(
                name,
                source.specs[name].shape,
                tf.int64 if name == "global_step" else tf.float32,
                use_resource=False,
            )
            for name in names
        }
        saver = tf.compat.v1.train.Saver(variables)
        saver.restore(session, tf.train.latest_checkpoint(str(tmp_path)))
        for name, value in session.run(variables).items():
            np.testing.assert_array_equal(value, source.read(name))
    assert source.specs.keys() == variables.keys()


@settings(max_examples=25, deadline=None)
@given(names=NAMES, slots=st.booleans(), step=st.sampled_from([None, 7]))
def test_names_map_both_ways_one_to_one(tmp_path_factory, names, slots, step):
    source = RandomWeights({name: [2, 3] for name in names}, slots, step)
    found = there_and_back(source, tmp_path_factory.mktemp("names"))
    same_tensors(found, source)
    assert list(found.specs) == sorted(found.specs)


def test_types_stay_as_they_are(tmp_path):
    types = ("float16", "float64", "int32", "int64", "bool", "uint8")
    values = {f"a/{name}": np.arange(6).astype(name) for name in types}
    values["b"] = tf.constant([1.5, -2.0], tf.bfloat16).numpy()
    values["s"] = np.array([b"one", b"two"], dtype=object)
    tf1.write_tf1(MemoryWeights(values), str(tmp_path / "x"))
    found = tf1.open_tf1(str(tmp_path / "x"))
    assert found.read("s").tolist() == [b"one", b"two"]
    del values["s"], found.specs["s"]
    same_tensors(found, MemoryWeights(values))


def test_a_large_checkpoint_is_several_files_that_read_as_one(tmp_path):
    source = RandomWeights({f"v{i}": [10, 10] for i in range(9)})
    prefix = str(tmp_path / "model.ckpt")
    tf1.write_tf1(source, prefix, bytes_per_file=2000)
    names = [os.path.basename(path) for path in tf1.list_files(prefix)]
    assert names[0] == "model.ckpt.index" and len(names) > 5
    assert names[1].endswith(f"data-00000-of-{len(names) - 1:05d}")
    same_tensors(tf1.open_tf1(prefix), source)


@pytest.fixture(params=[tf1.write_tf1, tf2.write_native])
def write(request):
    return request.param


def test_files_stay_unless_asked(tmp_path, write):
    prefix = str(tmp_path / "m")
    old, new = RandomWeights(SHAPES, step=1), RandomWeights(SHAPES, step=2)
    tf1.write_tf1(old, prefix, bytes_per_file=16)
    assert len(tf1.list_files(prefix)) > 2
    refused("there is a checkpoint already", write, new, prefix)
    same_tensors(open_weights(prefix), old)
    write(new, prefix, overwrite=True)
    assert len(tf1.list_files(prefix)) == 2
    same_tensors(open_weights(prefix), new)


class Failing(MemoryWeights):
    """Breaks off after some tensors, as a cut source file does."""

    def __init__(self, values, reads):
        super().__init__(values)
        self.reads = reads

    def read(self, name):
        self.reads -= 1
        if self.reads < 0:
            raise UserError("cut short")
        return super().read(name)


@pytest.mark.parametrize("reads", [0, 1, 3])
def test_a_source_that_breaks_off_leaves_the_old_files_alone(tmp_path, reads):
    prefix, old = str(tmp_path / "m"), RandomWeights(SHAPES)
    tf1.write_tf1(old, prefix)
    before = sorted(os.listdir(tmp_path))
    new = Failing({f"v{i}": np.zeros(9, "f4") for i in range(4)}, reads)
    with pytest.raises(UserError, match="cut short"):
        tf1.write_tf1(new, prefix, overwrite=True, bytes_per_file=40)
    same_tensors(tf1.open_tf1(prefix), old)
    assert sorted(os.listdir(tmp_path)) == before


def test_what_a_killed_process_left_is_in_nobodys_way(tmp_path):
    stale = tmp_path / "m.part"
    stale.mkdir()
    (stale / "shard_0.index").write_bytes(b"half")
    tf1.write_tf1(RandomWeights(SHAPES), str(tmp_path / "m"))
    same_tensors(tf1.open_tf1(str(tmp_path)), RandomWeights(SHAPES))
    assert not stale.exists()


def test_the_newest_is_the_one_written_last(tmp_path):
    for step in (9, 3):
        path = str(tmp_path / f"model.ckpt-{step}")
        tf1.write_tf1(RandomWeights(SHAPES, step=step), path)
    assert tf1.open_tf1(str(tmp_path)).global_step == 3
    state = tf.train.get_checkpoint_state(str(tmp_path))
    names = [os.path.basename(p) for p in state.all_model_checkpoint_paths]
    assert names == ["model.ckpt-9", "model.ckpt-3"]


def test_what_cannot_be_written_is_said(tmp_path, write):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        write(RandomWeights(SHAPES), str(tmp_path / "file" / "m"))
    refused("no tensors", tf1.write_tf1, MemoryWeights({}), str(tmp_path / "m"))


def test_what_is_ours_alone_is_refused_or_named(tmp_path):
    lone = MemoryWeights({"electra/a/adam_m": np.zeros([2], "f4")})
    with pytest.raises(UserError, match="electra/a/adam_m has no variable"):
        tf2.write_native(lone, str(tmp_path / "model.ckpt"))
    path = tf.train.Checkpoint(
        model={"a": tf.Variable([1.0])},
        step=tf.Variable(2, dtype=tf.int64),
        interval=tf.Variable(3.0),
    ).write(str(tmp_path / "model.ckpt-2"))
    opened = tf2.open_native(path)
    assert list(opened.shapes) == ["a"]
    assert [key.split("/")[0] for key in opened.dropped] == ["interval"]


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
def pair(one, discriminator, tiny_vocab, tmp_path):
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
            assert f"{path}: checksum differs" in str(error)
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


def test_what_goes_beside_comes_with_the_weights(write, tmp_path, tiny_vocab):
    def complete():
        assert not list(folder.glob("m.index"))
        formats.complete_folder(str(folder), {}, tiny_vocab)

    folder = tmp_path / "new"
    values = {f"electra/{n}": np.zeros([2], np.float32) for n in "ab"}
    with pytest.raises(UserError, match="cut short"):
        write(Failing(values, 1), str(folder / "m"), complete=complete)
    assert not folder.exists() or not list(folder.iterdir())
    write(MemoryWeights(values), str(folder / "m"), complete=complete)
    beside = {"electra_config.json", "vocab.txt", "digests.json"}
    assert beside < {path.name for path in folder.iterdir()}
    # What cannot be put there leaves the former weights.
    values["electra/a"] += 1
    more = {"complete": lambda: 1 // 0, "overwrite": True}
    with pytest.raises(ZeroDivisionError):
        write(MemoryWeights(values), str(folder / "m"), **more)
    assert not dict(open_weights(str(folder / "m")))["electra/a"].any()
    write(MemoryWeights(values), str(folder / "m"), overwrite=True)
    assert not list(folder.glob("*.replaced"))


def test_tensorflow_s_own_checksums_tell_damage(write, tmp_path):
    random = np.random.default_rng(16)
    for name in ("a", "b"):  # Two steps of one run.
        value = random.standard_normal([40, 5]).astype(np.float32)
        write(MemoryWeights({"electra/a": value}), str(tmp_path / name))
    whole = dict(open_weights(str(tmp_path / "a")))["electra/a"].tobytes()
    for number in range(60):
        end = (".index", ".data-00000-of-00001")[number % 2]
        path = tmp_path / f"a{end}"
        content, other = path.read_bytes(), (tmp_path / f"b{end}").read_bytes()
        damage = (flip, flip, cut, swap)[number // 2 % 4]
        path.write_bytes(damage(content, other, random))
        with contextlib.suppress(UserError):
            found = dict(open_weights(str(tmp_path / "a")))["electra/a"]
            assert found.tobytes() == whole, (number, damage, end)
        path.write_bytes(content)

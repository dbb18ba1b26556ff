# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Written checkpoints are read back to the bit; damaged ones are refused."""

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


def convert_twice(source, folder):
    """Convert TF1 -> native -> TF1, and open the last checkpoint."""
    first, second = folder / "tf1" / "model.ckpt", folder / "model.ckpt"
    third = folder / "again" / "model.ckpt"
    tf1.write_tf1(source, str(first))
    tf2.write_native(tf1.open_tf1(str(first)), str(second))
    tf1.write_tf1(tf2.open_native(str(second)), str(third))
    return tf1.open_tf1(str(third))


@pytest.mark.slow
def test_recorded_checkpoints_are_read_back_to_the_bit(golden_dir, tmp_path):
    files = [*golden_dir.glob("ckpt_*/*.index")]
    files += golden_dir.glob("train_finetune_*/*-5.index")
    files += golden_dir.glob("train_pretrain_electra/*.index")
    assert len(files) > 25
    for number, file in enumerate(files):
        source = tf1.open_tf1(str(file.with_suffix("")))
        same_tensors(convert_twice(source, tmp_path / str(number)), source)


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
    converted = convert_twice(source, tmp_path_factory.mktemp("names"))
    same_tensors(converted, source)
    assert list(converted.specs) == sorted(converted.specs)


def test_types_do_not_change(tmp_path):
    types = ("float16", "float64", "int32", "int64", "bool", "uint8")
    values = {f"a/{name}": np.arange(6).astype(name) for name in types}
    values["b"] = tf.constant([1.5, -2.0], tf.bfloat16).numpy()
    values["s"] = np.array([b"one", b"two"], dtype=object)
    tf1.write_tf1(MemoryWeights(values), str(tmp_path / "x"))
    read = tf1.open_tf1(str(tmp_path / "x"))
    assert read.read("s").tolist() == [b"one", b"two"]
    del values["s"], read.specs["s"]
    same_tensors(read, MemoryWeights(values))


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


def test_files_are_replaced_with_overwrite_only(tmp_path, write):
    prefix = str(tmp_path / "m")
    old, new = RandomWeights(SHAPES, step=1), RandomWeights(SHAPES, step=2)
    tf1.write_tf1(old, prefix, bytes_per_file=16)
    assert len(tf1.list_files(prefix)) > 2
    refused("this checkpoint exists", write, new, prefix)
    same_tensors(open_weights(prefix), old)
    write(new, prefix, overwrite=True)
    assert len(tf1.list_files(prefix)) == 2
    same_tensors(open_weights(prefix), new)


class Failing(MemoryWeights):
    """Weights that fail after some tensors, like a file that is cut short."""

    def __init__(self, values, reads):
        super().__init__(values)
        self.reads = reads

    def read(self, name):
        self.reads -= 1
        if self.reads < 0:
            raise UserError("cut short")
        return super().read(name)


@pytest.mark.parametrize("reads", [0, 1, 3])
def test_a_failing_source_changes_no_earlier_file(tmp_path, reads):
    prefix, old = str(tmp_path / "m"), RandomWeights(SHAPES)
    tf1.write_tf1(old, prefix)
    before = sorted(os.listdir(tmp_path))
    new = Failing({f"v{i}": np.zeros(9, "f4") for i in range(4)}, reads)
    with pytest.raises(UserError, match="cut short"):
        tf1.write_tf1(new, prefix, overwrite=True, bytes_per_file=40)
    same_tensors(tf1.open_tf1(prefix), old)
    assert sorted(os.listdir(tmp_path)) == before


def test_files_of_a_killed_process_are_removed(tmp_path):
    stale = tmp_path / "m.part"
    stale.mkdir()
    (stale / "shard_0.index").write_bytes(b"half")
    tf1.write_tf1(RandomWeights(SHAPES), str(tmp_path / "m"))
    same_tensors(tf1.open_tf1(str(tmp_path)), RandomWeights(SHAPES))
    assert not stale.exists()


def test_the_latest_checkpoint_is_the_last_one_written(tmp_path):
    for step in (9, 3):
        path = str(tmp_path / f"model.ckpt-{step}")
        tf1.write_tf1(RandomWeights(SHAPES, step=step), path)
    assert tf1.open_tf1(str(tmp_path)).global_step == 3
    state = tf.train.get_checkpoint_state(str(tmp_path))
    names = [os.path.basename(p) for p in state.all_model_checkpoint_paths]
    assert names == ["model.ckpt-9", "model.ckpt-3"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, write):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match="cannot be written"):
        write(RandomWeights(SHAPES), str(tmp_path / "file" / "m"))


def test_weights_without_tensors_are_refused(tmp_path):
    refused("no tensors", tf1.write_tf1, MemoryWeights({}), str(tmp_path / "m"))


def test_a_slot_without_its_variable_is_refused(tmp_path):
    weights = MemoryWeights({"electra/a/adam_m": np.zeros([2], "f4")})
    message = "electra/a/adam_m is the slot of a variable that is missing"
    refused(message, tf2.write_native, weights, str(tmp_path / "model.ckpt"))


def test_the_state_of_a_run_is_left_out(tmp_path):
    path = tf.train.Checkpoint(
        model={"a": tf.Variable([1.0])},
        step=tf.Variable(2, dtype=tf.int64),
        interval=tf.Variable(3.0),
    ).write(str(tmp_path / "model.ckpt-2"))
    opened = tf2.open_native(path)
    assert list(opened.shapes) == ["a"]
    assert [key.split("/")[0] for key in opened.dropped] == ["interval"]


def read_all(folder):
    """Return the content of a folder as plain values."""
    weights = open_weights(str(folder))
    tensors = {name: value.tobytes() for name, value in weights}
    return tensors, check_vocab(weights.vocab_file)


def flip(content, other, random):
    offset = random.integers(len(content))
    byte = bytes([content[offset] ^ 1 << random.integers(8)])
    return content[:offset] + byte + content[offset + 1 :]


def cut(content, other, random):
    return content[: random.integers(len(content))]


def swap(content, other, random):
    """Return the same file of a model that was trained differently."""
    return other


@pytest.fixture
def pair(single, discriminator, tiny_vocab, tmp_path):
    """Return two folders of equal shapes with different values and tokens."""
    tokens = pathlib.Path(tiny_vocab).read_text().split("\n")
    tokens[-2], tokens[-3] = tokens[-3], tokens[-2]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    other = type(single)(tmp_path / "other")
    values = {name: value + 1 for name, value in discriminator.items()}
    single.write(discriminator, vocab_file=tiny_vocab, overwrite=True)
    other.write(values, vocab_file=str(tmp_path / "vocab.txt"))
    return single / "discriminator", other / "discriminator"


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
@pytest.mark.parametrize(
    ("damage", "copies"), [(flip, 43), (cut, 11), (swap, 1)]
)
def test_no_damaged_copy_of_a_file_is_read_silently(name, damage, copies, pair):
    path, other = pair[0] / name, (pair[1] / name).read_bytes()
    content, random = path.read_bytes(), np.random.default_rng(16)
    messages = []
    for _ in range(copies):
        path.write_bytes(damage(content, other, random))
        messages.append(error_of(read_all, pair[0]))
    expected = f"{path}: checksum differs"
    assert [m for m in messages if expected not in str(m)] == []


def error_of(call, *arguments):
    """Return the UserError of a call, or None."""
    try:
        call(*arguments)
    except UserError as error:
        return error
    return None


@pytest.mark.parametrize("damage", [flip, cut])
def test_with_damaged_digests_values_are_right_or_refused(damage, pair):
    folder, _ = pair
    expected, random = read_all(folder), np.random.default_rng(16)
    path = folder / "digests.json"
    content = path.read_bytes()
    for _ in range(20):
        path.write_bytes(damage(content, None, random))
        error = error_of(read_all, folder)
        if error is None:
            assert read_all(folder) == expected
        else:
            assert "digests.json" in str(error)


def test_a_runs_vocabulary_is_found_after_a_move(tiny_config, tmp_path):
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
    moved = open_weights(str(tmp_path / "moved" / "models" / "tiny"))
    assert pathlib.Path(moved.vocab_file).samefile(tmp_path / "moved/vocab.txt")


ZEROS = {f"electra/{n}": np.zeros([2], np.float32) for n in "ab"}


@pytest.fixture
def complete(tmp_path, tiny_vocab):
    """Return a function that writes config and vocabulary before the index."""

    def complete():
        assert not list(tmp_path.glob("m.index"))
        formats.complete_folder(str(tmp_path), {}, tiny_vocab)

    return complete


def test_config_and_vocabulary_come_with_the_weights(write, complete, tmp_path):
    write(MemoryWeights(ZEROS), str(tmp_path / "m"), complete=complete)
    sidecars = {"electra_config.json", "vocab.txt", "digests.json"}
    assert sidecars < {path.name for path in tmp_path.iterdir()}


def test_failing_weights_leave_no_config(write, complete, tmp_path):
    with pytest.raises(UserError, match="cut short"):
        write(Failing(ZEROS, 1), str(tmp_path / "m"), complete=complete)
    assert not list(tmp_path.iterdir())


def test_a_failing_config_leaves_the_former_weights(write, tmp_path):
    prefix = str(tmp_path / "m")
    write(MemoryWeights(ZEROS), prefix)
    ones = MemoryWeights({name: value + 1 for name, value in ZEROS.items()})
    with pytest.raises(ZeroDivisionError):
        write(ones, prefix, overwrite=True, complete=lambda: 1 // 0)
    same_values = dict(open_weights(prefix))["electra/a"] == 0
    assert same_values.all()
    write(ones, prefix, overwrite=True)
    assert not list(tmp_path.glob("*.replaced"))


@pytest.mark.parametrize("end", [".index", ".data-00000-of-00001"])
@pytest.mark.parametrize(
    ("damage", "copies"), [(flip, 15), (cut, 8), (swap, 1)]
)
def test_tensorflows_checksums_detect_damage(
    damage, copies, end, write, tmp_path
):
    random = np.random.default_rng(16)
    for name in ("a", "b"):  # two checkpoints of a run
        value = random.standard_normal([40, 5]).astype(np.float32)
        write(MemoryWeights({"electra/a": value}), str(tmp_path / name))
    expected = dict(open_weights(str(tmp_path / "a")))["electra/a"].tobytes()
    path = tmp_path / f"a{end}"
    content, other = path.read_bytes(), (tmp_path / f"b{end}").read_bytes()
    values = set()
    for _ in range(copies):
        path.write_bytes(damage(content, other, random))
        with contextlib.suppress(UserError):
            read = dict(open_weights(str(tmp_path / "a")))["electra/a"]
            values.add(read.tobytes())
    assert values <= {expected}

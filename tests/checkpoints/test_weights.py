# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Assignment of all weights or none; parts and extended tables."""

import math
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.weights import (
    MemoryWeights,
    extend_positions,
    select_part,
)
from tests.checkpoints.conftest import RandomWeights, same_tensors
from tests.conftest import refused, restore

SHAPES = {
    "electra/embeddings/word_embeddings": [300, 4],
    "electra/embeddings/LayerNorm/gamma": [4],
    "electra/encoder/layer_0/output/dense/kernel": [8, 4],
    "generator_predictions/output_bias": [300],
    "discriminator_predictions/dense_1/bias": [1],
}

# Bytes of all the weights; a checkpoint's slots and step come after them.
SIZE = 4 * sum(math.prod(shape) for shape in SHAPES.values())


class Model:
    """Variables of given names and shapes, all zero."""

    def __init__(self, shapes=SHAPES):
        self.variables = variables(shapes)

    @property
    def values(self):
        return {v.name[:-2]: v.numpy() for v in self.variables}


def variables(shapes):
    return [tf.Variable(tf.zeros(size), name=n) for n, size in shapes.items()]


def not_restored(model, prefix):
    """Return the message of a refused restore, which changes no variable."""
    with pytest.raises(UserError) as caught:
        restore(model, prefix)
    assert not any(value.any() for value in model.values.values())
    return str(caught.value)


def write(prefix, tensors):
    """Write tensors by name in the format of TF1's Saver."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(value) for value in tensors.values()],
    )
    return str(prefix)


@pytest.fixture
def stored():
    """Return the tensors of an original run: weights, slots and step."""
    values = dict(RandomWeights(SHAPES))
    return dict(sorted(values.items(), key=lambda item: item[0] not in SHAPES))


@pytest.fixture
def prefix(tmp_path, stored):
    return write(tmp_path / "model.ckpt-1234", stored)


def test_missing_and_unexpected_variables_are_named(tmp_path, stored):
    del stored["generator_predictions/output_bias"]
    stored["bert/pooler/dense/kernel"] = np.zeros([2, 2], np.float32)
    stored["another/step"] = np.int64(3)
    prefix = write(tmp_path / "model.ckpt-1", stored)
    message = not_restored(Model(), prefix)
    assert f"{prefix}" in message and "lacks 1 of the model's 5" in message
    assert "generator_predictions/output_bias" in message
    model = Model()
    report = restore(model, prefix, allow_missing=True)
    for name, value in model.values.items():
        expected = stored.get(name, np.zeros(SHAPES[name]))
        np.testing.assert_array_equal(value, expected)
    assert report.missing == ("generator_predictions/output_bias",)
    assert report.unexpected == ("another/step", "bert/pooler/dense/kernel")
    lines = str(report).splitlines()
    assert "4 of 5 variables loaded, 1 missing, 2 unexpected" in lines[0]
    assert "step 1234" in lines[0] and "10 not used" in lines[0]
    names = [line.rpartition(": ")[2] for line in lines[1:]]
    assert names == [*report.missing, *report.unexpected]


def test_differing_shapes_are_refused(prefix):
    shapes = {**SHAPES, "electra/embeddings/word_embeddings": [250]}
    shapes["generator_predictions/output_bias"] = [250]
    message = not_restored(Model(shapes), prefix)
    assert "word_embeddings: checkpoint [300, 4], model [250]" in message
    assert "output_bias: checkpoint [300], model [250]" in message


@pytest.mark.parametrize(
    ("size", "line"),
    [(3, "... and 3 more"), (2, "v0: checkpoint float64, model float32")],
)
def test_many_shapes_or_types_are_listed_in_part(size, line, tmp_path):
    path = write(tmp_path / "c", {f"v{i}": np.zeros(2) for i in range(11)})
    model = Model({f"v{i}": [size] for i in range(11)})
    assert line in not_restored(model, path)


# `size`: bytes that remain of the file, which has the weights, then the slots,
# then the step.
@pytest.mark.parametrize("size", [0, 10, SIZE - 1, SIZE + 1, 3 * SIZE])
def test_a_data_file_that_is_cut_short_changes_nothing(size, prefix):
    data = pathlib.Path(prefix + ".data-00000-of-00001")
    content = data.read_bytes()
    assert size < len(content)
    data.write_bytes(content[:size])
    message = not_restored(Model(), prefix)
    assert re.search(f"{prefix}: cannot read .*corrupt, truncated", message)


def test_a_flipped_bit_in_the_last_weight_changes_nothing(prefix):
    data = pathlib.Path(prefix + ".data-00000-of-00001")
    content = bytearray(data.read_bytes())
    content[SIZE - 1] ^= 1
    data.write_bytes(content)
    message = not_restored(Model(), prefix)
    assert re.search(f"{prefix}: cannot read .*corrupt, truncated", message)
    assert "dense_1/bias" in message


def weights(values):
    return MemoryWeights({n: np.asarray(v, "f4") for n, v in values.items()})


class Slots:
    def __init__(self, variables):
        self.m = {v.name[:-2]: tf.Variable(tf.zeros_like(v)) for v in variables}
        self.v = {v.name[:-2]: tf.Variable(tf.zeros_like(v)) for v in variables}


WITH_SLOTS = {"a": [1, 2], "a/adam_m": [3, 4], "a/adam_v": [5, 6]}


def test_slots_are_assigned_to_the_optimizer():
    targets = variables({"a": [2]})
    optimizer = Slots(targets)
    report = assign(weights(WITH_SLOTS), targets, optimizer=optimizer)
    values = targets[0], optimizer.m["a"], optimizer.v["a"]
    np.testing.assert_array_equal(values, list(WITH_SLOTS.values()))
    assert (report.slots_loaded, report.slots_left) == (2, 0)


def test_slots_without_an_optimizer_are_counted_as_left():
    report = assign(weights(WITH_SLOTS), variables({"a": [2]}))
    assert (report.slots_loaded, report.slots_left) == (0, 2)


def test_missing_slots_are_refused():
    targets = variables({"a": [2]})
    values = {n: v for n, v in WITH_SLOTS.items() if n != "a/adam_v"}
    with pytest.raises(UserError, match="--init_checkpoint"):
        assign(weights(values), targets, optimizer=Slots(targets))


def test_a_different_shape_is_allowed_by_name_only():
    targets = variables({"head/kernel": [2], "body": [1]})
    source = weights({"head/kernel": [1, 2, 3], "body": [7]})
    with pytest.raises(UserError, match=r"checkpoint \[3\], model \[2\]"):
        assign(source, targets, allow_missing="body")
    report = assign(source, targets, allow_missing="^head")
    assert report.other_shape == ("head/kernel",) and report.loaded == ("body",)
    assert "different shape, keeps its initial value: head/kernel" in str(
        report
    )
    assert targets[0].numpy().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("stored", "needed", "message"),
    [
        ("generator_predictions", "discriminator_", "is a generator .*discrim"),
        ("discriminator_predictions", "generator/", "contains no generator"),
    ],
)
def test_a_generator_in_place_of_a_discriminator_is_named(
    stored, needed, message
):
    source = weights({f"{stored}/dense/kernel": [1]})
    with pytest.raises(UserError, match=message):
        assign(source, variables({f"{needed}predictions/kernel": [1]}))


def test_all_parts_together_have_all_tensors(pretrain_name, of_config):
    whole = of_config(pretrain_name)
    parts = [
        select_part(whole, part)
        for part in ("discriminator", "generator")
        if whole.contents.holds(part)
    ]
    assert {name for part in parts for name in part.specs} == set(whole.specs)
    assert select_part(whole, "all") is whole


@pytest.mark.parametrize("part", ["discriminator", "generator"])
def test_a_part_has_its_slots_and_lists_the_rest(part, of_config):
    whole = of_config("pretrain/small")
    selected = select_part(whole, part)
    assert set(selected.dropped) == set(whole.specs) - set(selected.specs)
    assert selected.global_step == 1234
    assert len(selected.slots) == 2 * len(selected.shapes)


def test_a_fine_tuned_model_is_a_discriminator_with_its_head(of_config):
    whole = of_config("finetune/small_squad")
    assert select_part(whole, "discriminator").specs == whole.specs
    encoder = select_part(whole, "encoder")
    assert {name.split("/")[0] for name in encoder.shapes} == {"electra"}
    assert "task_specific/squad/dense/kernel" in encoder.dropped


@pytest.mark.parametrize(
    ("name", "part", "description"),
    [
        ("pretrain/small_uniform_generator", "generator", "a discriminator"),
        ("finetune/small_cola", "generator", "a fine-tuned model"),
    ],
)
def test_a_missing_part_is_refused(name, part, description, of_config):
    whole = of_config(name)
    assert not whole.contents.holds(part)
    refused(
        f"no {part} in this checkpoint, which is {description}",
        select_part,
        whole,
        part,
    )


def test_an_unknown_part_is_refused(source):
    message = "expected one of all, discriminator"
    refused(message, select_part, source, "decoder")


TABLE = "electra/embeddings/position_embeddings"
GENERATOR_TABLE = "generator/embeddings/position_embeddings"
TABLES = {TABLE: [4, 2], GENERATOR_TABLE: [4, 3], "electra/other": [4, 2]}


@pytest.fixture
def source():
    return RandomWeights(TABLES)


def test_new_rows_repeat_the_table(source):
    longer = extend_positions(source, 10)
    old, new = source.read(TABLE), longer.read(TABLE)
    assert new.shape == longer.specs[TABLE].shape == (10, 2)
    np.testing.assert_array_equal(new, np.concatenate([old, old, old[:2]]))
    assert longer.read(GENERATOR_TABLE).shape == (10, 3)


@pytest.mark.parametrize("slot", ["/adam_m", "/adam_v"])
def test_slots_of_new_rows_are_zero(slot, source):
    new = extend_positions(source, 10).read(TABLE + slot)
    np.testing.assert_array_equal(new[:4], source.read(TABLE + slot))
    np.testing.assert_array_equal(new[4:], np.zeros([6, 2]))


def test_hparams_follow_the_extended_table(source):
    source.hparams = {"model_hparam_overrides": {"hidden_size": 8}}
    longer = extend_positions(source, 10)
    sizes = {"hidden_size": 8, "max_position_embeddings": 10}
    assert longer.hparams["model_hparam_overrides"] == sizes
    assert source.hparams["model_hparam_overrides"] == {"hidden_size": 8}


def test_a_shorter_table_is_cut(source):
    expected = {
        name: value[:3] if "position_embeddings" in name else value
        for name, value in source
    }
    same_tensors(extend_positions(source, 3), expected)


def test_extending_without_a_table_is_refused():
    with pytest.raises(UserError, match="no position_embeddings"):
        extend_positions(RandomWeights({"a": [1]}), 5)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights into a model: all of it, or nothing and a reason; views of them."""

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
from tests.checkpoints.conftest import RandomWeights
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
    """What is said instead of restoring; nothing changes."""
    with pytest.raises(UserError) as caught:
        restore(model, prefix)
    assert not any(value.any() for value in model.values.values())
    return str(caught.value)


def write(prefix, tensors):
    """Writes tensors by name, the format of TF1's Saver."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(value) for value in tensors.values()],
    )
    return str(prefix)


@pytest.fixture
def stored():
    """What a run of the original leaves: weights, then slots and the step."""
    values = dict(RandomWeights(SHAPES))
    return dict(sorted(values.items(), key=lambda item: item[0] not in SHAPES))


@pytest.fixture
def prefix(tmp_path, stored):
    return write(tmp_path / "model.ckpt-1234", stored)


def test_what_either_lacks_is_named(tmp_path, stored):
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
    named = [line.rpartition(": ")[2] for line in lines[1:]]
    assert named == [*report.missing, *report.unexpected]


def test_shapes_and_types_are_compared_and_many_counted(prefix, tmp_path):
    shapes = {**SHAPES, "electra/embeddings/word_embeddings": [250]}
    shapes["generator_predictions/output_bias"] = [250]
    message = not_restored(Model(shapes), prefix)
    assert "word_embeddings: checkpoint [300, 4], model [250]" in message
    assert "output_bias: checkpoint [300], model [250]" in message
    path = write(tmp_path / "c", {f"v{i}": np.zeros(2) for i in range(11)})
    model = Model({f"v{i}": [3] for i in range(11)})
    assert "... and 3 more" in not_restored(model, path)
    message = not_restored(Model({f"v{i}": [2] for i in range(11)}), path)
    assert "v0: checkpoint float64, model float32" in message


# Nothing; within the first weight; the last weight; the slots; the step; a
# flipped bit in the last weight.
@pytest.mark.parametrize("kept", [0, 10, SIZE - 1, SIZE + 1, 3 * SIZE, None])
def test_a_damaged_data_file_is_an_error_and_nothing_changes(kept, prefix):
    data = pathlib.Path(prefix + ".data-00000-of-00001")
    content = bytearray(data.read_bytes())
    assert kept is None or kept < len(content)
    content[SIZE - 1] ^= kept is None
    data.write_bytes(content[:kept])
    message = not_restored(Model(), prefix)
    assert re.search(f"{prefix}: cannot read .*damaged, cut short", message)
    assert kept is not None or "dense_1/bias" in message


def weights(values):
    return MemoryWeights({n: np.asarray(v, "f4") for n, v in values.items()})


class Slots:
    def __init__(self, variables):
        self.m, self.v = (
            {v.name[:-2]: tf.Variable(tf.zeros_like(v)) for v in variables}
            for _ in range(2)
        )


def test_slots_go_to_the_optimizer_or_are_counted_as_left():
    targets = variables({"a": [2]})
    optimizer = Slots(targets)
    values = {"a": [1, 2], "a/adam_m": [3, 4], "a/adam_v": [5, 6]}
    report = assign(weights(values), targets, optimizer=optimizer)
    found = targets[0], optimizer.m["a"], optimizer.v["a"]
    np.testing.assert_array_equal(found, list(values.values()))
    assert (report.slots_loaded, report.slots_left) == (2, 0)
    report = assign(weights(values), targets)
    assert (report.slots_loaded, report.slots_left) == (0, 2)
    del values["a/adam_v"]
    with pytest.raises(UserError, match="--init_checkpoint"):
        assign(weights(values), targets, optimizer=optimizer)


def test_another_shape_is_allowed_only_by_name():
    targets = variables({"head/kernel": [2], "body": [1]})
    source = weights({"head/kernel": [1, 2, 3], "body": [7]})
    with pytest.raises(UserError, match=r"checkpoint \[3\], model \[2\]"):
        assign(source, targets, allow_missing="body")
    report = assign(source, targets, allow_missing="^head")
    assert report.other_shape == ("head/kernel",) and report.loaded == ("body",)
    assert "of another shape, keeps its fresh value: head/kernel" in str(report)
    assert targets[0].numpy().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("held", "wanted", "words"),
    [
        ("generator_predictions", "discriminator_", "is a generator .*discrim"),
        ("discriminator_predictions", "generator/", "holds no generator"),
    ],
)
def test_one_network_given_for_the_other_is_called_one(held, wanted, words):
    source = weights({f"{held}/dense/kernel": [1]})
    with pytest.raises(UserError, match=words):
        assign(source, variables({f"{wanted}predictions/kernel": [1]}))


def test_parts_together_are_the_whole(pretrain_name, of_config):
    whole = of_config(pretrain_name)
    parts = [
        select_part(whole, part)
        for part in ("discriminator", "generator")
        if whole.contents.holds(part)
    ]
    assert {name for part in parts for name in part.specs} == set(whole.specs)
    for part in parts:
        assert set(part.dropped) == set(whole.specs) - set(part.specs)
        assert part.global_step == 1234
        assert len(part.slots) == 2 * len(part.shapes)
    assert select_part(whole, "all") is whole


def test_a_fine_tuned_model_is_a_discriminator_with_its_head(of_config):
    whole = of_config("finetune/small_squad")
    assert select_part(whole, "discriminator").specs == whole.specs
    encoder = select_part(whole, "encoder")
    assert {name.split("/")[0] for name in encoder.shapes} == {"electra"}
    assert "task_specific/squad/dense/kernel" in encoder.dropped


@pytest.mark.parametrize(
    "name, part, other",
    [
        ("pretrain/small_uniform_generator", "generator", "a discriminator"),
        ("finetune/small_cola", "generator", "a fine-tuned model"),
    ],
)
def test_a_part_that_is_not_there_is_refused(name, part, other, of_config):
    whole = of_config(name)
    assert not whole.contents.holds(part)
    refused(f"no {part}: it is {other}", select_part, whole, part)
    refused("expected one of all, discriminator", select_part, whole, "decoder")


TABLE = "electra/embeddings/position_embeddings"
OWN = "generator/embeddings/position_embeddings"
TABLES = {TABLE: [4, 2], OWN: [4, 3], "electra/other": [4, 2]}


@pytest.fixture
def source():
    return RandomWeights(TABLES)


def test_new_rows_repeat_the_table_and_their_slots_are_zero(source):
    source.hparams = {"model_hparam_overrides": {"hidden_size": 8}}
    longer = extend_positions(source, 10)
    old, new = source.read(TABLE), longer.read(TABLE)
    assert new.shape == longer.specs[TABLE].shape == (10, 2)
    np.testing.assert_array_equal(new, np.concatenate([old, old, old[:2]]))
    assert longer.read(OWN).shape == (10, 3)
    for slot in ("/adam_m", "/adam_v"):
        new = longer.read(TABLE + slot)
        np.testing.assert_array_equal(new[:4], source.read(TABLE + slot))
        np.testing.assert_array_equal(new[4:], np.zeros([6, 2]))
    sizes = {"hidden_size": 8, "max_position_embeddings": 10}
    assert longer.hparams["model_hparam_overrides"] == sizes
    assert source.hparams["model_hparam_overrides"] == {"hidden_size": 8}


def test_a_shorter_table_is_cut_and_no_table_is_refused(source):
    shorter = extend_positions(source, 3)
    for name in source.specs:
        value = source.read(name)
        kept = value[:3] if "position_embeddings" in name else value
        np.testing.assert_array_equal(shorter.read(name), kept)
        assert shorter.specs[name].dtype == source.specs[name].dtype
    assert shorter.global_step == 1234
    assert list(shorter.specs) == list(source.specs)
    with pytest.raises(UserError, match="no position_embeddings"):
        extend_positions(RandomWeights({"a": [1]}), 5)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading the original's checkpoints: all of it, or nothing and a reason."""

import json
import math
import pathlib

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.restore import assign
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.pretraining.model import PretrainingModel

SHAPES = {
    "electra/embeddings/word_embeddings": [300, 4],
    "electra/embeddings/LayerNorm/gamma": [4],
    "electra/encoder/layer_0/output/dense/kernel": [8, 4],
    "generator_predictions/output_bias": [300],
    "discriminator_predictions/dense_1/bias": [1],
}

# Bytes of all the weights; a checkpoint's slots and step come after them.
SIZE = 4 * sum(math.prod(shape) for shape in SHAPES.values())


class Weights(tf.Module):
    """Variables of given names and shapes, all zero."""

    def __init__(self, shapes=None):
        super().__init__()
        self.all = [
            tf.Variable(tf.zeros(shape), name=name)
            for name, shape in (shapes or SHAPES).items()
        ]

    @property
    def values(self):
        return {v.name[:-2]: v.numpy() for v in self.all}

    def untouched(self):
        return not any(value.any() for value in self.values.values())


def noise(shapes):
    random = np.random.RandomState(0)
    return {
        name: random.randn(*shape).astype(np.float32)
        for name, shape in shapes.items()
    }


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
    """What a run of the original leaves: weights, slots and the step."""
    weights = noise(SHAPES)
    slots = {
        f"{name}/{slot}": value * 0.5
        for name, value in weights.items()
        for slot in ("adam_m", "adam_v")
    }
    return {**weights, **slots, "global_step": np.int64(1234)}


@pytest.fixture
def prefix(tmp_path, stored):
    return write(tmp_path / "model.ckpt-1234", stored)


def test_every_value_is_restored_bit_for_bit(prefix, stored):
    model = Weights()
    report = tf1.restore(model, prefix)
    for name, value in model.values.items():
        assert value.tobytes() == stored[name].tobytes()
    assert sorted(report.loaded) == sorted(SHAPES)
    assert report.missing == report.unexpected == ()
    assert (report.path, report.global_step) == (prefix, 1234)
    assert report.slots == 2 * len(SHAPES)


def test_a_savers_checkpoint_is_read(tmp_path):
    values = noise(SHAPES)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in values.items():
            tf.compat.v1.get_variable(
                name, initializer=value, use_resource=False
            )
        session.run(tf.compat.v1.global_variables_initializer())
        path = tf.compat.v1.train.Saver().save(
            session, str(tmp_path / "model.ckpt"), write_meta_graph=False
        )
    model = Weights()
    report = tf1.restore(model, path)
    assert (report.slots, report.global_step) == (0, None)
    for name, value in model.values.items():
        np.testing.assert_array_equal(value, values[name])


@pytest.fixture
def partial_prefix(tmp_path, stored):
    """Without one weight, with one and a half that no model has."""
    del stored["generator_predictions/output_bias"]
    stored["bert/pooler/dense/kernel"] = np.zeros([2, 2], np.float32)
    stored["another/step"] = np.int64(3)
    return write(tmp_path / "model.ckpt-1", stored)


def test_a_missing_variable_is_named_and_nothing_changes(partial_prefix):
    model = Weights()
    with pytest.raises(UserError) as caught:
        tf1.restore(model, partial_prefix)
    assert "lacks 1 of the model's 5 variables" in str(caught.value)
    assert "generator_predictions/output_bias" in str(caught.value)
    assert partial_prefix in str(caught.value)
    assert model.untouched()


def test_what_either_lacks_is_reported(partial_prefix):
    report = tf1.restore(Weights(), partial_prefix, allow_missing=True)
    assert report.missing == ("generator_predictions/output_bias",)
    assert report.unexpected == ("another/step", "bert/pooler/dense/kernel")
    lines = str(report).splitlines()
    assert "4 of 5 variables loaded, 1 missing, 2 unexpected" in lines[0]
    assert "step 1234" in lines[0] and "10 not used" in lines[0]
    named = [line.rpartition(": ")[2] for line in lines[1:]]
    assert named == [*report.missing, *report.unexpected]


@hypothesis.given(saved=st.sets(st.sampled_from([*SHAPES, "x/y"]), min_size=1))
@hypothesis.settings(max_examples=25)
def test_loaded_and_missing_partition_the_models_names(tmp_path_factory, saved):
    path = tmp_path_factory.mktemp("subset") / "model.ckpt"
    values = noise({**SHAPES, "x/y": [2]})
    write(path, {name: values[name] for name in saved})
    model = Weights()
    report = tf1.restore(model, str(path), allow_missing=True)
    assert set(report.loaded) == saved & set(SHAPES)
    assert set(report.missing) == set(SHAPES) - saved
    assert len(report.loaded) + len(report.missing) == len(SHAPES)
    assert report.unexpected == tuple(saved - set(SHAPES))
    for name, value in model.values.items():
        expected = values[name] if name in saved else np.zeros(SHAPES[name])
        np.testing.assert_array_equal(value, expected)


def test_every_differing_shape_is_shown_and_nothing_changes(prefix):
    shapes = dict(SHAPES)
    shapes["electra/embeddings/word_embeddings"] = [250, 4]
    shapes["generator_predictions/output_bias"] = [250]
    model = Weights(shapes)
    with pytest.raises(UserError) as caught:
        tf1.restore(model, prefix)
    message = str(caught.value)
    assert "word_embeddings: checkpoint [300, 4], model [250, 4]" in message
    assert "output_bias: checkpoint [300], model [250]" in message
    assert model.untouched()


def test_a_long_list_of_differing_shapes_is_counted(tmp_path):
    path = write(tmp_path / "c", {f"v{i}": np.zeros(2) for i in range(11)})
    with pytest.raises(UserError, match=r"\.\.\. and 3 more"):
        tf1.restore(Weights({f"v{i}": [3] for i in range(11)}), path)


def test_another_type_of_number_is_refused(tmp_path):
    values = {"a": np.zeros(2), "b": np.ones(2, np.float32)}
    model = Weights({"b": [2], "a": [2]})
    with pytest.raises(UserError, match="a: checkpoint float64, model float32"):
        tf1.restore(model, write(tmp_path / "c", values))
    assert model.untouched()


@pytest.fixture
def tiny_checkpoint(tmp_path, tiny_config):
    """A checkpoint of the tiny model."""
    model = PretrainingModel(tiny_config(generator_hidden_size=0.5))
    tensors = {v.name[:-2]: v.numpy() for v in model.variables}
    return write(tmp_path / "model.ckpt-0", tensors)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("generator_hidden_size", 1.0),
        ("vocab_size", 210),
        ("embedding_size", 12),
        ("model_hparam_overrides.max_position_embeddings", 64),
        ("model_hparam_overrides.type_vocab_size", 3),
        ("model_hparam_overrides.intermediate_size", 40),
        ("model_hparam_overrides.hidden_size", 32),
    ],
)
def test_a_differing_shape_names_the_hparam(
    name, value, tiny_checkpoint, tiny_config
):
    changes = {"generator_hidden_size": 0.5}
    group, _, hparam = name.rpartition(".")
    if group:
        overrides = tiny_config().model_hparam_overrides
        changes[group] = {**overrides, hparam: value}
    else:
        changes[hparam] = value
    if hparam == "hidden_size":  # the generator then differs by its own share
        name, changes["generator_hidden_size"] = hparam, 0.25
    with pytest.raises(UserError, match="shapes differ") as caught:
        tf1.restore(PretrainingModel(tiny_config(**changes)), tiny_checkpoint)
    lines = str(caught.value).splitlines()
    remedies = [li.split("; ")[1] for li in lines if ": checkpoint" in li]
    assert remedies
    for remedy in remedies:
        assert name in remedy and " and " not in remedy


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ([250, 5], "vocab_size and embedding_size"),
        ([300], r"\[300, 4\], model \[300\]"),
    ],
)
def test_two_other_axes_and_another_rank(shape, words, prefix):
    shapes = {**SHAPES, "electra/embeddings/word_embeddings": shape}
    with pytest.raises(UserError, match=words):
        tf1.restore(Weights(shapes), prefix)


# Nothing; within the first weight; the last weight; the slots; the step.
@pytest.mark.parametrize("kept", [0, 10, SIZE - 1, SIZE + 1, 3 * SIZE])
def test_a_cut_data_file_is_an_error_and_nothing_changes(kept, prefix):
    data = pathlib.Path(prefix + ".data-00000-of-00001")
    content = data.read_bytes()
    assert kept < len(content)
    data.write_bytes(content[:kept])
    model = Weights()
    with pytest.raises(UserError) as caught:
        tf1.restore(model, prefix)
    assert f"{prefix}: cannot read " in str(caught.value)
    assert "cut short" in str(caught.value)
    assert model.untouched()


def test_a_flipped_bit_is_an_error_and_nothing_changes(prefix):
    data = pathlib.Path(prefix + ".data-00000-of-00001")
    content = bytearray(data.read_bytes())
    content[SIZE - 1] ^= 1  # in the model's last weight
    data.write_bytes(content)
    model = Weights()
    with pytest.raises(UserError, match="cannot read .*dense_1/bias.*damaged"):
        tf1.restore(model, prefix)
    assert model.untouched()


def test_a_checkpoint_of_the_original_fits_its_model(golden_dir, tmp_path):
    directory = golden_dir / "ckpt_pretrain_tiny"
    log = json.loads((directory / "train_log.json").read_text())
    config = PretrainingConfig.create(
        "tiny",
        str(tmp_path),
        vocab_file=str(golden_dir / "vocab.txt"),
        **log["hparams"],
    )
    model = PretrainingModel(config)
    report = tf1.restore(model, str(directory))
    assert report.missing == report.unexpected == ()
    assert len(report.loaded) == len(model.trainable_variables)
    assert report.slots == 2 * len(report.loaded)
    assert report.global_step == 50


# Any weights, any variables.


class Slots:
    def __init__(self, variables):
        self.m, self.v = (
            {v.name[:-2]: tf.Variable(tf.zeros_like(v)) for v in variables}
            for _ in range(2)
        )


def variables(**shapes):
    """Variables by name; "__" stands for the slash."""
    return [
        tf.Variable(tf.zeros(shape), name=name.replace("__", "/"))
        for name, shape in shapes.items()
    ]


def weights(**values):
    return MemoryWeights(
        {
            name.replace("__", "/"): np.asarray(value, "f4")
            for name, value in values.items()
        }
    )


def test_slots_go_to_the_optimizer_or_are_counted_as_left():
    targets = variables(a=[2])
    optimizer = Slots(targets)
    source = weights(a=[1, 2], a__adam_m=[3, 4], a__adam_v=[5, 6])
    report = assign(source, targets, optimizer=optimizer)
    assert targets[0].numpy().tolist() == [1, 2]
    assert optimizer.m["a"].numpy().tolist() == [3, 4]
    assert optimizer.v["a"].numpy().tolist() == [5, 6]
    assert (report.slots_loaded, report.slots_left, report.slots) == (2, 0, 2)
    report = assign(source, targets)
    assert (report.slots_loaded, report.slots_left) == (0, 2)


def test_a_missing_slot_names_the_way_out_and_changes_nothing():
    targets = variables(a=[1])
    with pytest.raises(UserError, match="--init_checkpoint"):
        assign(weights(a=[1], a__adam_m=[3]), targets, optimizer=Slots(targets))
    assert targets[0].numpy().tolist() == [0]


def test_another_shape_is_allowed_only_by_name():
    targets = variables(head__kernel=[2], body=[1])
    source = weights(head__kernel=[1, 2, 3], body=[7])
    with pytest.raises(UserError, match=r"checkpoint \[3\], model \[2\]"):
        assign(source, targets, allow_missing="body")
    report = assign(source, targets, allow_missing="^head")
    assert report.other_shape == ("head/kernel",)
    assert report.loaded == ("body",)
    assert "of another shape, keeps its fresh value: head/kernel" in str(report)
    assert targets[0].numpy().tolist() == [0, 0]


def test_a_position_table_of_other_length_offers_to_extend_it():
    name = "electra__embeddings__position_embeddings"
    with pytest.raises(UserError, match=r"--extend_positions=4"):
        assign(weights(**{name: np.zeros([2, 3])}), variables(**{name: [4, 3]}))


@pytest.mark.parametrize(
    ("held", "wanted", "words"),
    [
        ("generator_predictions", "discriminator_", "is a generator .*discrim"),
        ("discriminator_predictions", "generator/", "holds no generator"),
    ],
)
def test_one_network_given_for_the_other_is_called_one(held, wanted, words):
    source = weights(**{f"{held}/dense/kernel": [1]})
    targets = variables(**{f"{wanted}predictions/kernel": [1]})
    with pytest.raises(UserError, match=words):
        assign(source, targets)


def test_a_spoiled_pattern_is_a_user_error():
    with pytest.raises(UserError, match="not a regular expression"):
        assign(weights(a=[1]), variables(a=[1]), allow_missing="(")

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints.restore import assign
from electra_tf.checkpoints.weights import MemoryWeights


class Slots:
    def __init__(self, variables):
        self.m, self.v = (
            {
                v.name.split(":")[0]: tf.Variable(tf.zeros_like(v))
                for v in variables
            }
            for _ in range(2)
        )


def variables(**shapes):
    return [
        tf.Variable(tf.zeros(shape), name=name.replace("__", "/"))
        for name, shape in shapes.items()
    ]


def weights(**arrays):
    return MemoryWeights(
        {
            name.replace("__", "/"): np.asarray(value, "f4")
            for name, value in arrays.items()
        }
    )


def test_slots_go_to_the_optimizer():
    targets = variables(a=[2])
    optimizer = Slots(targets)
    report = assign(
        weights(a=[1, 2], a__adam_m=[3, 4], a__adam_v=[5, 6]),
        targets,
        optimizer=optimizer,
    )
    assert targets[0].numpy().tolist() == [1, 2]
    assert optimizer.m["a"].numpy().tolist() == [3, 4]
    assert optimizer.v["a"].numpy().tolist() == [5, 6]
    assert (report.slots_loaded, report.slots_left, report.slots) == (2, 0, 2)


def test_without_an_optimizer_slots_are_counted_as_left():
    report = assign(
        weights(a=[1], a__adam_m=[3], a__adam_v=[5]), variables(a=[1])
    )
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


def test_a_generator_given_for_a_discriminator_is_called_one():
    source = weights(generator_predictions__dense__kernel=[1])
    targets = variables(discriminator_predictions__dense__kernel=[1])
    with pytest.raises(UserError, match="It is a generator .*discriminator"):
        assign(source, targets)


def test_a_discriminator_given_for_a_generator_is_called_one():
    source = weights(discriminator_predictions__dense__kernel=[1])
    targets = variables(generator__encoder__kernel=[1])
    with pytest.raises(UserError, match="holds no generator"):
        assign(source, targets)


def test_a_spoiled_pattern_is_a_user_error():
    with pytest.raises(UserError, match="not a regular expression"):
        assign(weights(a=[1]), variables(a=[1]), allow_missing="(")

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model's variables, sharing, options and draws."""

import json

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.pretraining.model import PretrainingModel

CONFIGURATIONS = """
small small_electric small_untied_generator_False
small_mlm_electra_objective_False small_untied_generator_embeddings
small_uniform_generator small_two_tower_generator_electra
small_electric_untied_generator_embeddings debug_small debug_base
""".split()


@pytest.fixture
def features():
    random = np.random.RandomState(0)
    ids = random.randint(104, 200, [4, 16])
    ids[:, 0], ids[:, 15] = 101, 102
    return {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.ones([4, 16], tf.int32),
        "segment_ids": tf.zeros([4, 16], tf.int32),
    }


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_variables_are_named_as_the_originals(name, golden_dir, tmp_path):
    path = golden_dir / "variables_all_configs.json"
    recorded = json.loads(path.read_text())[f"pretrain/{name}"]
    config = PretrainingConfig.create(
        "m",
        str(tmp_path),
        vocab_file=str(golden_dir / "vocab.txt"),
        **recorded["hparams"],
    )
    variables = PretrainingModel(config).trainable_variables
    assert {v.name[:-2]: v.shape.as_list() for v in variables} == {
        v["name"]: v["shape"]
        for v in recorded["creation_order_model_variables"]
        if v["trainable"]
    }
    count = sum(int(tf.size(v)) for v in variables)
    assert count == recorded["n_params_trainable"]


def test_draws_depend_on_seed_and_step_only(tiny_config, features):
    model = PretrainingModel(tiny_config())

    def run(seed, step):
        out = model.compute(
            features, training=True, seed=tf.constant([seed, step])
        )
        return out["masked_lm_positions"].numpy(), float(out["total_loss"])

    (positions, loss), (again, same_loss) = run(1, 5), run(1, 5)
    np.testing.assert_array_equal(positions, again)
    assert loss == same_loss
    for other in (run(1, 6), run(2, 5)):
        assert (positions != other[0]).any() and loss != other[1]


def test_a_vocabulary_larger_than_the_table_is_refused(tiny_config):
    with pytest.raises(UserError, match=r"200 tokens .* model has 150"):
        PretrainingModel(tiny_config(vocab_size=150))

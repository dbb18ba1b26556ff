# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counted parameters against the variables of models that were made."""

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.plan.parameters import pretraining_parameters
from electra_tf.pretraining.model import PretrainingModel

MODELS = {
    "small generator": {},
    "half the layers": {"generator_layers": 0.5},
    "as wide as the tables": {
        "generator_hidden_size": 0.5,
        "model_size": "base",
        "embedding_size": 8,
    },
    "no projection": {"model_size": "base", "embedding_size": None},
    "untied embeddings": {"untied_generator_embeddings": True},
    "tied generator": {"untied_generator": False},
    "masked LM": {"electra_objective": False},
    "uniform": {"uniform_generator": True},
    "two towers": {"two_tower_generator": True},
    "Electric": {"electra_objective": False, "electric_objective": True},
    "Electric, untied": {
        "electra_objective": False,
        "electric_objective": True,
        "untied_generator_embeddings": True,
    },
    "debug": {"debug": True},
}


@pytest.mark.parametrize("name", MODELS)
def test_counted_parameters_are_the_variables_numbers(tiny_config, name):
    config = tiny_config(**MODELS[name])
    model = PretrainingModel(config)
    counted = pretraining_parameters(config)
    sizes = {
        variable.name: variable.shape.num_elements()
        for variable in model.trainable_variables
    }
    assert counted.total == sum(sizes.values())
    if model.discriminates:
        alone = ("electra/", "discriminator_predictions/")
        assert counted.discriminator_alone == sum(
            size for name, size in sizes.items() if name.startswith(alone)
        )


@pytest.mark.parametrize(
    ("preset", "millions"), [("small", 14), ("base", 110), ("large", 335)]
)
def test_discriminators_are_as_large_as_the_paper_says(preset, millions):
    config = PretrainingConfig.create("model", "data", preset=preset)
    counted = pretraining_parameters(config).discriminator_alone
    assert counted == pytest.approx(1e6 * millions, rel=0.04)


def test_a_masked_lm_has_no_discriminator(tiny_config):
    counted = pretraining_parameters(tiny_config(electra_objective=False))
    assert counted.discriminator_alone == counted.discriminator == 0

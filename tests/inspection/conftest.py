# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny pre-trained models of every kind, as runs save them."""

import functools
import os

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from electra_tf.inspection.fill_mask import padded
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.pretraining.saving import export_parts

# Rows of the position table of the models here: 30 tokens fit.
POSITIONS = 32
KINDS = {
    "electra": {},
    "electric": {"electric_objective": True, "electra_objective": False},
    "two_tower": {"two_tower_generator": True},
    "mlm": {"electra_objective": False},
    "uniform": {"uniform_generator": True},
    "tied": {"untied_generator": False},
    "replace": {"objective": "replace_mlm"},
    "all_tokens": {"objective": "all_tokens_mlm"},
    "unigram": {"generator": "unigram"},
}


@pytest.fixture(scope="session")
def folders(pretrained_folder, long_sizes):
    """Return a function from a kind of model to the folder of the model."""
    sizes = long_sizes | {"max_position_embeddings": POSITIONS}
    return lambda kind: pretrained_folder(
        max_seq_length=POSITIONS, model_hparam_overrides=sizes, **KINDS[kind]
    )


@pytest.fixture(scope="session")
def pretrained(folders, tmp_path_factory):
    """Return a factory of models by kind or part ("electra/generator")."""

    @functools.cache
    def load(name):
        kind, _, part = name.partition("/")
        if not part:
            return load_pretrained(folders(kind))
        whole = load(kind)
        folder = str(tmp_path_factory.mktemp(part))
        export_parts(whole.model, 7, folder)
        return load_pretrained(os.path.join(folder, "export", part))

    return load


def generator_log_probs(pretrained, ids):
    """Return log-probabilities [L, V] of a row of ids, by the layers alone."""
    model = pretrained.model
    inputs = [tf.constant(value) for value in padded([ids]).values()]
    if hasattr(model.generator, "ltr"):
        vectors, table = model.generator(*inputs)[0], model.generator.ltr
    else:
        vectors = model.generator(*inputs).sequence_output
        table = model.generator
    table = table.embeddings.word_embeddings
    logits = model.masked_lm_head(vectors, table)[0]
    return log_softmax(np.float64(logits), -1)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model of the repository has learned some English."""

import os
import pathlib

import numpy as np
import pytest

from electra_tf.inspection.fill_mask import MaskFiller
from electra_tf.inspection.token_inspection import TokenInspector
from electra_tf.keras import Encoder, Tokenizer
from electra_tf.pretraining.loading import load_pretrained

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "reference"


@pytest.fixture(scope="module")
def released():
    """Load the model by name, from any current folder."""
    loaded = load_pretrained("reference")
    assert os.path.samefile(loaded.path, FOLDER)
    return loaded


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("They live in the United [MASK] of America.", "states"),
        ("He was born in New [MASK].", "york"),
        ("I do not [MASK] what to do.", "know"),
    ],
)
def test_the_generator_of_the_released_model_fills_masks(released, text, word):
    (filled,) = MaskFiller(released)([text])
    assert filled.masks[0].candidates[0].token == word


@pytest.mark.parametrize(
    ("text", "position", "wrong"),
    [
        ("he went to the house and opened the door", 8, "of"),
        ("she has never been in love", 6, "with"),
        ("two of the boys were late", 6, "the"),
    ],
)
def test_the_discriminator_of_the_released_model_detects_wrong_words(
    released, text, position, wrong
):
    def replaced(words):
        inspection = TokenInspector(released).inspect(
            " ".join(words), nothing=True
        )
        return inspection.tokens[position].prediction.replaced_probability

    words = text.split()
    assert replaced(words) < 0.5
    words[position - 1] = wrong
    assert replaced(words) > 0.5


def test_the_released_model_is_small_and_a_keras_layer():
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 6e6
    assert {"README.md", "electra_config.json"} <= {f.name for f in files}
    tokenizer = Tokenizer.from_pretrained("reference", max_seq_length=16)
    vectors = Encoder.from_pretrained("reference")(
        tokenizer(["The bank of the river.", "The bank lent money."])
    )["sequence_output"].numpy()
    assert vectors.shape == (2, 16, 128)
    # The vector of a word depends on its context.
    assert np.abs(vectors[0, 2] - vectors[1, 2]).max() > 0.1

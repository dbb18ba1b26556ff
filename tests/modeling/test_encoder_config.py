# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes of encoders: derived values, bounds, scaling, the recorded ones."""

import dataclasses

import pytest

from configure.errors import UserError
from electra_tf.modeling.encoder_config import EncoderConfig
from tests.conftest import read_json


@pytest.mark.parametrize(
    ("hidden", "heads"), [(32, 1), (64, 1), (100, 1), (128, 2), (192, 3)]
)
def test_heads_and_inner_width_follow_an_overridden_hidden_size(hidden, heads):
    sizes = EncoderConfig.for_size("base", 100, {"hidden_size": hidden})
    assert sizes.num_attention_heads == heads
    assert sizes.intermediate_size == 4 * hidden


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"hidden_size": 200}, r"\(200\).*\(3\).*num_attention_heads"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob is 1.0"),
        ({"attention_probs_dropout_prob": -0.1}, "prob is -0.1"),
    ],
)
def test_impossible_sizes_are_refused(overrides, message):
    with pytest.raises(UserError, match=message):
        EncoderConfig.for_size("small", 100, overrides)


@pytest.mark.parametrize(
    ("hidden", "layers", "fractions", "expected"),
    [
        (256, 3, (0.25, 0.5), (64, 2)),
        (768, 5, (0.33333, 0.5), (256, 2)),
        (10, 7, (0.25, 0.5), (2, 4)),
        (14, 7, (0.25, 1.0), (4, 7)),
    ],
)
def test_scaled_sizes_round_half_to_even(hidden, layers, fractions, expected):
    sizes = EncoderConfig(100, hidden, layers, num_attention_heads=1)
    scaled = sizes.scaled(*fractions)
    assert (scaled.hidden_size, scaled.num_hidden_layers) == expected
    assert scaled.intermediate_size == 4 * scaled.hidden_size
    assert scaled.num_attention_heads == max(1, scaled.hidden_size // 64)


def test_resolved_sizes_equal_the_recorded_ones(golden_dir):
    recorded = read_json(golden_dir / "variables_all_configs.json")
    actual, expected = {}, {}
    for name, entry in recorded.items():
        if name.startswith("pretrain/"):
            hparams = entry["hparams"]
            sizes = EncoderConfig.for_size(
                hparams.get("model_size", "small"),
                30522,
                hparams.get("model_hparam_overrides"),
                hparams.get("debug", False),
            )
            actual[name] = dataclasses.asdict(sizes)
            expected[name] = entry["bert_config"] | {"layer_norm_eps": 1e-12}
    assert len(expected) == 15
    assert actual == expected

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Named sizes, overrides and the generator's fraction."""

import dataclasses
import json

import pytest

from electra_tf.modeling.encoder_config import EncoderConfig


@pytest.mark.parametrize(
    ("hidden", "heads"), [(32, 1), (64, 1), (100, 1), (128, 2), (192, 3)]
)
def test_heads_and_inner_width_follow_an_overridden_hidden_size(hidden, heads):
    config = EncoderConfig.for_size("base", 100, {"hidden_size": hidden})
    assert config.num_attention_heads == heads
    assert config.intermediate_size == 4 * hidden


def test_overrides_win_over_derived_values():
    overrides = {
        "hidden_size": 48,
        "num_attention_heads": 6,
        "intermediate_size": 50,
        "vocab_size": 7,
        "hidden_act": "relu",
    }
    config = EncoderConfig.for_size("small", 100, overrides)
    actual = dataclasses.asdict(config)
    assert {name: actual[name] for name in overrides} == overrides
    assert config.size_per_head == 8
    assert len(overrides) == 5


def test_debug_wins_over_overrides():
    overrides = {"hidden_size": 64, "num_hidden_layers": 9, "vocab_size": 50}
    config = EncoderConfig.for_size("large", 100, overrides, debug=True)
    assert config == EncoderConfig(
        vocab_size=50,
        hidden_size=144,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=576,
    )


RATE = "attention_probs_dropout_prob"


@pytest.mark.parametrize(
    ("size", "overrides", "words"),
    [
        ("tiny", {}, "'tiny'.*small, base, large"),
        ("small", {"hiden_size": 64}, "'hiden_size'.*nearest: hidden_size"),
        ("small", {"hidden_size": 200}, r"\(200\).*\(3\).*num_attention_heads"),
        ("small", {"num_attention_heads": 0}, "num_attention_heads"),
        ("small", {"num_attention_heads": -1}, "num_attention_heads"),
        ("small", {"hidden_dropout_prob": 1.0}, "hidden_dropout_prob is 1.0"),
        ("small", {RATE: -0.1}, f"{RATE} is -0.1"),
    ],
)
def test_what_makes_no_model_is_refused(size, overrides, words):
    with pytest.raises(ValueError, match=words):
        EncoderConfig.for_size(size, 100, overrides)


@pytest.mark.parametrize(
    ("hidden", "fraction", "expected"),
    [(256, 0.25, 64), (768, 0.33333, 256), (10, 0.25, 2), (14, 0.25, 4)],
)
def test_the_scaled_hidden_size_rounds_half_to_even(hidden, fraction, expected):
    config = EncoderConfig(100, hidden, num_attention_heads=1)
    scaled = config.scaled(fraction, 1.0)
    assert scaled.hidden_size == expected
    assert scaled.intermediate_size == 4 * expected
    assert scaled.num_attention_heads == max(1, expected // 64)


@pytest.mark.parametrize(("layers", "expected"), [(3, 2), (5, 2), (7, 4)])
def test_scaled_layers_round_half_to_even(layers, expected):
    config = EncoderConfig(100, 64, layers, num_attention_heads=1)
    assert config.scaled(1.0, 0.5).num_hidden_layers == expected


def test_resolved_sizes_equal_the_recorded_ones(golden_dir):
    text = (golden_dir / "variables_all_configs.json").read_text()
    recorded = json.loads(text)
    recorded = {n: recorded[n] for n in recorded if n.startswith("pretrain/")}
    assert len(recorded) == 15
    for name, entry in recorded.items():
        hparams = entry["hparams"]
        config = EncoderConfig.for_size(
            hparams.get("model_size", "small"),
            30522,
            hparams.get("model_hparam_overrides"),
            hparams.get("debug", False),
        )
        assert dataclasses.asdict(config) == entry["bert_config"], name

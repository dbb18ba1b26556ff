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
    # And debug over overrides.
    config = EncoderConfig.for_size("small", 100, overrides, debug=True)
    assert (config.vocab_size, config.hidden_size) == (7, 144)


RATE = "attention_probs_dropout_prob"


@pytest.mark.parametrize(
    ("size", "overrides", "words"),
    [
        ("tiny", {}, "'tiny'.*small, base, large"),
        ("small", {"hiden_size": 64}, "'hiden_size'.*nearest: hidden_size"),
        ("small", {"hidden_size": 200}, r"\(200\).*\(3\).*num_attention_heads"),
        ("small", {"num_attention_heads": 0}, "num_attention_heads"),
        ("small", {"hidden_dropout_prob": 1.0}, "hidden_dropout_prob is 1.0"),
        ("small", {RATE: -0.1}, f"{RATE} is -0.1"),
    ],
)
def test_what_makes_no_model_is_refused(size, overrides, words):
    with pytest.raises(ValueError, match=words):
        EncoderConfig.for_size(size, 100, overrides)


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
    config = EncoderConfig(100, hidden, layers, num_attention_heads=1)
    scaled = config.scaled(*fractions)
    assert (scaled.hidden_size, scaled.num_hidden_layers) == expected
    assert scaled.intermediate_size == 4 * scaled.hidden_size
    assert scaled.num_attention_heads == max(1, scaled.hidden_size // 64)


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
        expected = entry["bert_config"] | {"layer_norm_eps": 1e-12}
        assert dataclasses.asdict(config) == expected, name

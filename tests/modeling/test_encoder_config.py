# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Named sizes, overrides and the generator's fraction."""

import dataclasses
import json

import pytest

from electra_tf.modeling.encoder_config import EncoderConfig


@pytest.mark.parametrize(
    ("size", "hidden", "layers", "heads", "inner"),
    [
        ("small", 256, 12, 4, 1024),
        ("base", 768, 12, 12, 3072),
        ("large", 1024, 24, 16, 4096),
    ],
)
def test_named_sizes(size, hidden, layers, heads, inner):
    config = EncoderConfig.for_size(size, 30522)
    assert config.vocab_size == 30522
    assert config.hidden_size == hidden
    assert config.num_hidden_layers == layers
    assert config.num_attention_heads == heads
    assert config.intermediate_size == inner
    assert config.size_per_head == 64


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
    assert overrides["hidden_size"] == 48 and len(overrides) == 5


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


def test_an_unknown_override_names_the_nearest():
    with pytest.raises(ValueError, match="'hiden_size'.*nearest: hidden_size"):
        EncoderConfig.for_size("small", 100, {"hiden_size": 64})


def test_an_unknown_size_is_refused():
    with pytest.raises(ValueError, match="'tiny'.*small, base, large"):
        EncoderConfig.for_size("tiny", 100)


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(
        ValueError, match=r"\(200\).*\(3\).*num_attention_heads"
    ):
        EncoderConfig.for_size("small", 100, {"hidden_size": 200})


@pytest.mark.parametrize("heads", [0, -1])
def test_there_must_be_a_head(heads):
    with pytest.raises(ValueError, match="num_attention_heads"):
        EncoderConfig.for_size("small", 100, {"num_attention_heads": heads})


@pytest.mark.parametrize("rate", [1.0, -0.1])
@pytest.mark.parametrize(
    "name", ["hidden_dropout_prob", "attention_probs_dropout_prob"]
)
def test_a_dropout_rate_lies_below_one(name, rate):
    with pytest.raises(ValueError, match=f"{name} is {rate}"):
        EncoderConfig.for_size("small", 100, {name: rate})


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


def test_scaling_keeps_everything_else():
    config = EncoderConfig(
        100, 128, 4, 8, 77, "relu", 0.3, 0.2, max_position_embeddings=40
    )
    scaled = config.scaled(0.5, 1.0)
    assert scaled == dataclasses.replace(
        config, hidden_size=64, num_attention_heads=1, intermediate_size=256
    )


def test_resolved_sizes_equal_the_recorded_ones(golden_dir):
    text = (golden_dir / "variables_all_configs.json").read_text()
    recorded = {
        name: entry
        for name, entry in json.loads(text).items()
        if name.startswith("pretrain/")
    }
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

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whole runs counted as the original's script counts them."""

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.analysis.flops import pretraining_step_flops
from electra_tf.analysis.published import (
    PUBLISHED_MODELS,
    paper_train_flops,
)

RECORDED_NAMES = {
    "ELECTRA-Small": "electra_small",
    "BERT-Small (the paper's)": "bert_small",
    "ELMo": "elmo",
    "GPT": "gpt",
    "ELECTRA-Base": "electra_base",
    "BERT-Base": "bert_base",
    "BERT-Large": "bert_large",
    "ELECTRA-400K": "electra_400k",
    "ELECTRA-Large (1.75M)": "electra_1.75M",
    "RoBERTa": "roberta",
    "XLNet": "xlnet",
    "ALBERT": "albert",
    "T5-11B": "t5_11b",
}


@pytest.fixture
def recorded(golden_dir):
    """What the original's script printed."""
    lines = (golden_dir / "flops.txt").read_text().splitlines()
    return {name: float(count) for name, count in map(str.split, lines)}


def test_published_counts_are_what_the_original_prints(recorded):
    found = {model.name: model.train_flops for model in PUBLISHED_MODELS}
    expected = {
        name: pytest.approx(recorded[key], rel=5e-4)
        for name, key in RECORDED_NAMES.items()
    }
    assert found == expected
    assert set(RECORDED_NAMES.values()) == set(recorded)


@pytest.mark.parametrize(
    ("preset", "key"),
    [
        ("small", "electra_small"),
        ("base", "electra_base"),
        ("large", "electra_400k"),
    ],
)
def test_counted_the_papers_way_the_papers_models_agree(recorded, preset, key):
    config = PretrainingConfig.create("model", "data", preset=preset)
    assert paper_train_flops(config) == pytest.approx(recorded[key], rel=0.01)


@pytest.mark.parametrize(
    ("preset", "ratio"), [("small", 0.90), ("base", 1.05), ("large", 1.27)]
)
def test_what_is_computed_differs_by_what_is_explained(preset, ratio):
    # A backward pass of twice the forward pass makes 1.5 of it, lookups that
    # are no products make less: 0.6 of the small model is left.
    config = PretrainingConfig.create("model", "data", preset=preset)
    computed = pretraining_step_flops(config).total * config.num_train_steps
    assert computed / paper_train_flops(config) == pytest.approx(
        ratio, abs=0.01
    )


def test_a_petaflop_day_is_a_day():
    assert PUBLISHED_MODELS[0].petaflop_days == pytest.approx(0.01498, rel=1e-3)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Both configs equal what the original made of sets of hparams."""

import json
import pathlib

import pytest

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
CONFIGS = {"pretraining": PretrainingConfig, "finetuning": FinetuningConfig}
NUM_CASES = {"pretraining": 10, "finetuning": 14}
QA_FILES = {
    "qa_eval_file": "eval",
    "qa_preds_file": "preds",
    "qa_na_file": "null_odds",
}


def create(kind, **hparams):
    return CONFIGS[kind].create("NAME", "DATA", **hparams)


def recorded(kind):
    path = FIXTURES / f"{kind}_configs.json"
    return json.loads(path.read_text(encoding="utf-8"))


def resolved(config, name):
    """A value; of a method, its path for a task given by place holders."""
    if name in QA_FILES:
        return f"<{config.qa_file('{task}', QA_FILES[name])}>"
    value = getattr(config, name)
    if not callable(value):
        return value
    places = ("{task}", "{split}", "{trial}")
    wanted = places if name == "test_predictions" else places[:1]
    return f"<{value(*wanted)}>"


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_recorded_configs_are_the_reference_ones(kind, golden_dir):
    path = golden_dir / "configs.json"
    golden = json.loads(path.read_text(encoding="utf-8"))[kind]
    wanted = [{k: case[k] for k in ("kwargs", "config")} for case in golden]
    assert recorded(kind) == wanted


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_recorded_config_of_the_original_is_reproduced(kind):
    cases = recorded(kind)
    assert len(cases) >= NUM_CASES[kind]
    for case in cases:
        config = create(kind, **case["kwargs"])
        for name, expected in case["config"].items():
            value = resolved(config, name)
            assert value == expected, (case["kwargs"], name)
            assert type(value) is type(expected), (case["kwargs"], name)


def test_finetuning_extensions_are_off_by_default():
    plain = create("finetuning")
    original = {*recorded("finetuning")[0]["config"], "write_distill_outputs"}
    extensions = set(plain.as_dict()) - original
    on = {
        n for n in extensions if getattr(plain, n) not in (False, 0, None, "")
    }
    # The settings that say how the original's behaviour is reached, paths,
    # and those that change time, or what a stop does, but no result.
    assert on == set(
        """
        results_json data_source strip_accents lr_read_order pooling
        shuffle_buffer_size length_buckets group_eval_by_length
        gradient_accumulation_steps keep_checkpoint_max
        distribution_strategy log_every_n_steps optimizer adam_beta_1
        adam_beta_2 adam_epsilon classification_head_layers
        on_nonfinite preemption_seconds
        """.split()
    )

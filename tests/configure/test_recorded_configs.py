# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Configs that were recorded from the original are reproduced."""

import pytest

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from tests.conftest import FIXTURES, read_json

PROGRAMS = {"pretraining": PretrainingConfig, "finetuning": FinetuningConfig}
RECORDED = {
    kind: read_json(FIXTURES / f"{kind}_configs.json") for kind in PROGRAMS
}
QA_FILES = {
    "qa_eval_file": "eval",
    "qa_preds_file": "preds",
    "qa_na_file": "null_odds",
}
PLACEHOLDERS = ("{task}", "{split}", "{trial}")


def resolved(config, name):
    """Return a value; for a method, the path that it makes of placeholders."""
    if name in QA_FILES:
        return f"<{config.qa_file('{task}', QA_FILES[name])}>"
    value = getattr(config, name)
    if not callable(value):
        return value
    arguments = PLACEHOLDERS if name == "test_predictions" else PLACEHOLDERS[:1]
    return f"<{value(*arguments)}>"


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_recorded_configs_are_the_reference_ones(kind, golden_dir):
    golden = read_json(golden_dir / "configs.json")[kind]
    cases = [{k: case[k] for k in ("kwargs", "config")} for case in golden]
    assert RECORDED[kind] == cases


@pytest.mark.parametrize(
    ("kind", "count"), [("pretraining", 10), ("finetuning", 14)]
)
def test_enough_configs_are_recorded(kind, count):
    assert len(RECORDED[kind]) >= count


@pytest.mark.parametrize(
    ("kind", "case"),
    [(kind, case) for kind, cases in RECORDED.items() for case in cases],
)
def test_every_recorded_config_of_the_original_is_reproduced(kind, case):
    config = PROGRAMS[kind].create("NAME", "DATA", **case["kwargs"])
    values = {name: resolved(config, name) for name in case["config"]}
    assert values == case["config"]
    types = {name: type(value) for name, value in values.items()}
    assert types == {n: type(value) for n, value in case["config"].items()}


# Extensions that are on by default. Their defaults give the original's results:
# they are the original's constants or paths, or change only the time of a run
# or the effect of a stop.
HARMLESS_EXTENSIONS = {
    "results_json",
    "data_source",
    "strip_accents",
    "lr_read_order",
    "pooling",
    "shuffle_buffer_size",
    "length_buckets",
    "group_eval_by_length",
    "gradient_accumulation_steps",
    "keep_checkpoint_max",
    "distribution_strategy",
    "log_every_n_steps",
    "optimizer",
    "adam_beta_1",
    "adam_beta_2",
    "adam_epsilon",
    "classification_head_layers",
    "on_nonfinite",
    "preemption_seconds",
}


def test_finetuning_extensions_are_off_by_default():
    config = FinetuningConfig.create("NAME", "DATA")
    original = {*RECORDED["finetuning"][0]["config"], "write_distill_outputs"}
    extensions = set(config.as_dict()) - original
    off = (False, 0, None, "")
    is_on = {name for name in extensions if getattr(config, name) not in off}
    assert is_on == HARMLESS_EXTENSIONS


@pytest.mark.parametrize("name", ["do_lower_case", "strip_accents"])
def test_cased_taggers_treat_case_as_other_tasks(name):
    hparams = {name: False}
    config = FinetuningConfig.create("NAME", "DATA", **hparams)
    assert config.fix_tagging_casing

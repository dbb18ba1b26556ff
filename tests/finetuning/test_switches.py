# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Memory, precision, XLA and freezing: what switches may and may not change."""

import numpy as np
import pytest

from electra_tf.training import strategy, summaries
from electra_tf.training.loop import LossScale

pytestmark = pytest.mark.slow  # Whole runs are compared.
MODEL = "models/tiny/finetuning_models/sst_model_1"


@pytest.fixture
def trained(config_of, run, weights_of, tmp_path):
    """Trains for an epoch; returns the weights."""

    def train(**hparams):
        run(config_of(num_train_epochs=1, overwrite=True, **hparams))
        return weights_of(tmp_path / MODEL)

    return train


def test_switches_that_save_memory_give_the_same_weights(
    config_of, trained, monkeypatch
):
    monkeypatch.setattr("electra_tf.finetuning.model.DROPOUT_RATE", 0.0)
    overrides = {
        **config_of().model_hparam_overrides,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    plain, in_parts, recomputed = (
        trained(model_hparam_overrides=overrides, **switch)
        for switch in (
            {},
            {"gradient_accumulation_steps": 2},
            {"recompute_grad": True},
        )
    )
    for name, value in plain.items():
        np.testing.assert_allclose(in_parts[name], value, atol=1e-5)
        np.testing.assert_allclose(recomputed[name], value, atol=1e-5)

    # A small machine switches by itself.
    monkeypatch.setattr(strategy, "machine_memory", lambda: 1 << 20)
    said = []
    monkeypatch.setattr(
        strategy.logging,
        "log_first_n",
        lambda level, text, count, *_: said.append(text),
    )
    chosen = trained(model_hparam_overrides=overrides)
    assert len(said) == 1 and "computed again" in said[0]
    for name, value in chosen.items():
        np.testing.assert_array_equal(value, recomputed[name])


def test_half_precision_leaves_a_float32_model(trained, tmp_path, monkeypatch):
    # The usual first factor is too large for gradients as steep as here.
    scales = {"fp16": LossScale(256.0)}
    monkeypatch.setattr(LossScale, "of", scales.get)
    plain = trained()
    for precision in ("bf16", "fp16"):
        found = trained(mixed_precision=precision)
        assert found.keys() == plain.keys()
        for name, value in plain.items():
            assert found[name].dtype == value.dtype
            np.testing.assert_allclose(
                found[name], value, atol=2e-3, err_msg=name
            )
        row = summaries.read_rows(str(tmp_path / MODEL / "train_log.jsonl"))[-1]
        scaled = {"loss_scale": 256.0, "skipped_updates": 0.0}
        assert {k: v for k, v in row.items() if k in scaled} == (
            scaled if precision == "fp16" else {}
        )


def test_xla_programs_train_and_predict(config_of, run):
    result, _ = run(
        config_of(num_train_epochs=1, max_seq_length=16, jit_compile=True)
    )
    assert np.isfinite(result["trials"][0]["results"]["sst"]["loss"])


def test_frozen_layers_stay_as_they_are(config_of, run, weights_of, tmp_path):
    overrides = dict(config_of().model_hparam_overrides, num_hidden_layers=2)
    run(config_of(model_hparam_overrides=overrides))
    config = config_of(
        model_hparam_overrides=overrides,
        init_checkpoint=str(tmp_path / MODEL),
        freeze_layers=1,
        overwrite=True,
        model_dir=str(tmp_path / "frozen"),
    )
    before = weights_of(tmp_path / MODEL)
    run(config)
    after = weights_of(tmp_path / "frozen_1")
    changed = {
        name
        for name in before.keys() & after.keys()
        if "adam" not in name and not np.array_equal(before[name], after[name])
    }
    frozen = ("electra/embeddings", "electra/encoder/layer_0")
    assert not any(name.startswith(frozen) for name in changed)
    assert any(name.startswith("electra/encoder/layer_1") for name in changed)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""When activations are computed again instead of kept."""

import pytest
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.modeling.transformer import Encoder
from electra_tf.plan.memory import pretraining_memory
from electra_tf.pretraining import build
from electra_tf.training import strategy

GIB = 1 << 30


@pytest.fixture
def machine(monkeypatch):
    """Sets the machine's memory in bytes; returns what was warned of."""

    def give(memory, devices=("CPU",)):
        warnings = []
        monkeypatch.setattr(strategy, "machine_memory", lambda: memory)
        monkeypatch.setattr(
            strategy.logging,
            "log_first_n",
            lambda level, text, count, *_: warnings.append(text),
        )
        monkeypatch.setattr(
            tf.config,
            "list_physical_devices",
            lambda: [
                tf.config.PhysicalDevice(f"/{kind}:0", kind) for kind in devices
            ],
        )
        return warnings

    return give


def decided(**hparams):
    config = PretrainingConfig.create("model", "data", **hparams)
    return strategy.uses_remat(config, pretraining_memory(config))


@pytest.mark.parametrize(
    ("memory", "devices", "hparams", "expected"),
    [
        (16 * GIB, ("CPU",), {}, False),
        (2 * GIB, ("CPU",), {}, True),
        (None, ("CPU",), {}, False),
        (GIB, ("CPU", "GPU"), {}, False),
        (GIB, ("CPU",), {"recompute_grad": False}, False),
        (1 << 50, ("CPU",), {"recompute_grad": True}, True),
        (GIB, ("CPU",), {"do_train": False, "do_eval": True}, False),
    ],
)
def test_what_does_not_fit_is_computed_again_and_said(
    machine, memory, devices, hparams, expected
):
    warnings = machine(memory, devices)
    assert decided(**hparams) is expected
    said = ["are computed again" in text for text in warnings]
    assert said == [True] * (expected and not hparams)


def test_a_quarter_of_the_machine_is_left_to_others(machine):
    need = pretraining_memory(PretrainingConfig.create("model", "data")).total
    machine(round(need / 0.74))
    assert not decided()
    machine(round(need / 0.76))
    assert decided()


def test_machines_share_a_batch_and_devices_of_one_do_not(monkeypatch):
    assert strategy.rows_of_a_machine(7) == 7
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        assert strategy.rows_of_a_machine(7) == 7

    class Workers(tf.distribute.MultiWorkerMirroredStrategy):
        num_replicas_in_sync = 2

        def __init__(self):  # Waits for no other worker.
            pass

    monkeypatch.setattr(tf.distribute, "get_strategy", Workers)
    assert strategy.rows_of_a_machine(7) == 4


def test_the_model_of_a_run_computes_as_decided(machine, tiny_config):
    for memory, expected in ((1 << 20, True), (1 << 50, False)):
        machine(memory)
        model = build.build_model(tiny_config())
        encoders = [m for m in model.submodules if isinstance(m, Encoder)]
        assert len(encoders) == 2
        assert all(e.compute_policy.remat is expected for e in encoders)

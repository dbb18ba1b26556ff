# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""When activations are computed again instead of kept."""

import types

import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.analysis.memory import pretraining_memory
from electra_tf.training import recomputation

GIB = 1 << 30


@pytest.fixture
def machine(monkeypatch):
    """Sets the machine's memory in bytes; returns what was warned of."""

    def give(memory, devices=("CPU",)):
        warnings = []
        monkeypatch.setattr(recomputation, "machine_memory", lambda: memory)
        monkeypatch.setattr(
            recomputation.logging, "warning", lambda *a: warnings.append(a[0])
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
    return recomputation.recomputes(config, pretraining_memory(config))


def test_what_fits_is_kept_without_a_word(machine):
    warnings = machine(16 * GIB)
    assert not decided() and not warnings


def test_what_does_not_fit_is_computed_again_and_said(machine):
    warnings = machine(2 * GIB)
    assert decided()
    assert (
        "are computed again" in warnings[0] and "recompute_grad" in warnings[0]
    )


def test_a_quarter_of_the_machine_is_left_to_others(machine):
    need = pretraining_memory(PretrainingConfig.create("model", "data")).total
    machine(round(need / 0.74))
    assert not decided()
    machine(round(need / 0.76))
    assert decided()


def test_a_choice_of_ones_own_stands(machine):
    warnings = machine(GIB)
    assert not decided(recompute_grad=False)
    machine(1 << 50)
    assert decided(recompute_grad=True) and not warnings


def test_accelerators_and_unknown_machines_keep(machine):
    machine(GIB, ("CPU", "GPU"))
    assert not decided()
    machine(None)
    assert not decided()


def test_the_hparam_can_be_left_to_the_machine_in_every_way():
    for value in (None, "none", "null"):
        config = FinetuningConfig.create("model", "data", recompute_grad=value)
        assert config.recompute_grad is None
    config = FinetuningConfig.create("model", "data", recompute_grad="true")
    assert config.recompute_grad is True


def test_devices_share_a_batch(monkeypatch):
    assert recomputation.rows_of_a_device(7) == 7
    both = types.SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: both)
    assert recomputation.rows_of_a_device(7) == 4

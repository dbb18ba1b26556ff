# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The choice of recomputing the activations of blocks in training."""

import pytest
import tensorflow as tf

from electra_tf.modeling import activation_checkpointing
from electra_tf.modeling.activation_checkpointing import needs_checkpointing
from electra_tf.modeling.encoder import Encoder
from electra_tf.pretraining import build
from electra_tf.pretraining.model import build_model


@pytest.fixture
def set_devices(monkeypatch):
    """Set the devices that TensorFlow reports."""

    def set_devices(*kinds):
        devices = [tf.config.PhysicalDevice(f"/{d}:0", d) for d in kinds]
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda: devices)

    return set_devices


@pytest.fixture
def warnings(monkeypatch):
    """Collect the texts of warnings that are logged."""
    texts = []
    monkeypatch.setattr(
        activation_checkpointing.logging,
        "log_first_n",
        lambda level, text, count, *values: texts.append(text % values),
    )
    return texts


@pytest.mark.parametrize(
    ("recompute_grad", "needed", "devices", "expected"),
    [
        (None, 1000, ["CPU"], False),
        (None, 1001, ["CPU"], True),
        (None, 1001, ["CPU", "GPU"], False),
        (False, 1001, ["CPU"], False),
        (True, 1000, ["CPU"], True),
    ],
)
def test_memory_decides_unless_the_hparam_does(
    set_devices, warnings, recompute_grad, needed, devices, expected
):
    set_devices(*devices)
    assert needs_checkpointing(recompute_grad, needed, 1000.0) is expected
    assert len(warnings) == int(expected and recompute_grad is None)


def test_the_warning_names_both_sizes_and_the_hparam(set_devices, warnings):
    set_devices("CPU")
    needs_checkpointing(None, 3 << 30, float(2 << 30))
    assert "about 3.0 GiB, but training may use 2.0 GiB" in warnings[0]
    assert "Set recompute_grad to true or false" in warnings[0]


@pytest.mark.parametrize(
    ("memory", "expected"), [(1 << 20, True), (1 << 50, False)]
)
def test_all_encoders_of_a_model_use_it(
    set_devices, monkeypatch, tiny_config, memory, expected
):
    set_devices("CPU")
    monkeypatch.setattr(build, "machine_memory", lambda: memory)
    model = build_model(tiny_config())
    policies = [
        module.compute_policy
        for module in model.submodules
        if isinstance(module, Encoder)
    ]
    assert len(policies) == 2
    assert all(p.activation_checkpointing is expected for p in policies)

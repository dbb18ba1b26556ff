# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).resolve().with_name("two_devices.py")
ROOT = PROGRAM.parents[2]


def results_of(hparams, *data_dir):
    """With one device, with two, and with two and two parts of a batch."""
    child = subprocess.run(
        [sys.executable, PROGRAM, json.dumps(hparams), *data_dir],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    one, two, divided = json.loads(child.stdout.partition("RESULT")[2])
    return one, (two, divided)


@pytest.mark.multi_device
@pytest.mark.parametrize("uniform", [False, True], ids=["dense", "sparse"])
def test_two_devices_train_as_one_does(settings, uniform):
    """`sparse`: a uniform generator leaves row-wise embedding gradients."""
    one, others = results_of(settings(uniform_generator=uniform))
    for two in others:
        assert_equal_runs(one, two)


@pytest.mark.multi_device
def test_two_devices_give_the_scores_of_one(task_dir, hparams):
    one, others = results_of({**hparams, "num_train_epochs": 1.0}, task_dir)
    for found in others:
        for name, value in one["sst"].items():
            assert found["sst"][name] == pytest.approx(value, abs=1e-4), name


def assert_equal_runs(one, two):
    assert one["step"] == two["step"] == 3
    assert one["names"] == two["names"]
    np.testing.assert_allclose(two["values"], one["values"], rtol=1e-5)
    for name, weights in one["weights"].items():
        np.testing.assert_allclose(
            two["weights"][name], weights, atol=1e-6, err_msg=name
        )
    for found, expected in zip(
        two["evaluation"], one["evaluation"], strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

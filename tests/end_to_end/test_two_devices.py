# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.mark.multi_device
@pytest.mark.parametrize("uniform", [False, True], ids=["dense", "sparse"])
def test_two_devices_train_as_one_does(settings, uniform):
    """`sparse`: a uniform generator leaves row-wise embedding gradients."""
    hparams = settings(uniform_generator=uniform)
    child = subprocess.run(
        [sys.executable, str(HERE / "two_devices.py"), json.dumps(hparams)],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "-1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    one, *others = json.loads(child.stdout.split("RESULT")[1])
    assert len(others) == 2  # Whole, and in two parts each.
    for two in others:
        assert_equal_runs(one, two)


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

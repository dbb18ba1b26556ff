# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outputs that are not finite numbers are refused with their row."""

import numpy as np
import pytest

from electra_tf.metrics.finite_outputs import check_finite
from tests.conftest import refused


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [[4], [4, 3], [4, 2, 2]])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_bad_row_is_named(dtype, shape, value):
    scores = np.zeros(shape, dtype)
    scores[2:] = value
    outputs = {"eid": np.arange(4), "scores": scores}
    refused(
        f"row 2: the model's output scores is {value}; expected a finite",
        lambda: check_finite(outputs, lambda row: f"row {row}"),
    )


def test_finite_and_whole_numbers_pass():
    outputs = {
        "extremes": np.array([np.finfo(np.float32).max, -1e-45], np.float32),
        "ids": np.array([2**31 - 1, 0], np.int32),
        "none": np.zeros([0, 3], np.float32),
    }
    check_finite(outputs, str)

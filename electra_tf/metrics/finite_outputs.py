# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Check of a model's outputs for infinite values and NaN.

Damaged weights, or weights that overflow in half precision, would otherwise
result in answers and scores without a message: the largest of NaN logits is the
first label.
"""

from collections.abc import Callable, Mapping

import numpy as np

from configure.errors import UserError


def check_finite(
    outputs: Mapping[str, np.ndarray], describe: Callable[[int], str]
) -> None:
    """Raise a UserError if an output of a row is infinite or NaN.

    Args:
      outputs: arrays [B, ...] by name; only float arrays are checked.
      describe: function from the index of a row to words that name the row.
    """
    for name, array in outputs.items():
        if not np.issubdtype(array.dtype, np.floating):
            continue
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            value = array[tuple(bad[0])]
            raise UserError(
                f"{describe(int(bad[0][0]))}: the model's output {name} is"
                f" {value}; expected a finite number. The weights are damaged,"
                " or overflow in half precision. Restore the model, or use"
                " float32."
            )

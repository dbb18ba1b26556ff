# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How encoders compute, as opposed to what: what is kept, in which dtype."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Computation:
    """How an encoder's blocks are computed; the weights are float32 always."""

    # Activations inside blocks are computed again for the gradient instead of
    # kept from the forward pass: only each block's input is.
    recompute: bool = False


def recomputed(
    block: Callable[[tf.Tensor], tf.Tensor],
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Keeps only the input of a block for its gradient.

    Args:
      block: a function of a float tensor that draws nothing but from fixed
        seeds, so that the second computation repeats the first.

    Returns:
      The same function.
    """
    return tf.recompute_grad(block)

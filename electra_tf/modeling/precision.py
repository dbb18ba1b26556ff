# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: the dtype of blocks, and the loss scale of float16."""

import functools
from collections.abc import Sequence

import tensorflow as tf

_DTYPES = {"": "float32", "bf16": "bfloat16", "fp16": "float16"}


def block_dtype(mixed_precision: str) -> str:
    """Return the dtype of blocks under the hparam `mixed_precision`.

    Matrix products of transformer blocks, and the operations between them, have
    this dtype. Weights, layer norms, softmaxes, embeddings and heads are
    float32.
    """
    return _DTYPES[mixed_precision]


# Names of the logged values that describe loss scaling.
SCALE, SKIPPED, SKIPPED_IN_ALL = "loss_scale", "skipped", "skipped_updates"


class LossScale(tf.Module):
    """A factor of the loss that prevents underflow of float16 gradients.

    The factor is a power of two, which does not round the gradients. The factor
    is halved when gradients overflow, and doubled after `growth_steps` steps
    without overflow.

    Source: Micikevicius et al., Mixed Precision Training (2018), section 3.2.
    """

    def __init__(
        self, initial: float = 2.0**15, growth_steps: int = 2000
    ) -> None:
        super().__init__(name="loss_scale")
        self._growth_steps = growth_steps
        variable = functools.partial(tf.Variable, trainable=False)
        self.scale = variable(initial, dtype=tf.float32)
        # Number of updates without overflow since the scale last changed.
        self.good_steps = variable(0, dtype=tf.int64)
        self.skipped_updates = variable(0, dtype=tf.int64)

    @classmethod
    def of(cls, mixed_precision: str) -> "LossScale | None":
        """Return a new scale for "fp16"; None for other precisions."""
        return cls() if mixed_precision == "fp16" else None

    def unscaled(
        self, gradients: Sequence[tf.Tensor | tf.IndexedSlices | None]
    ) -> list[tf.Tensor | tf.IndexedSlices | None]:
        """Divide gradients of a scaled loss by the scale; None stays None."""
        inverse = 1.0 / self.scale
        return [
            None if gradient is None else tf.math.scalar_mul(inverse, gradient)
            for gradient in gradients
        ]

    def update(self, grad_norm: tf.Tensor) -> dict[str, tf.Tensor]:
        """Adapt the scale after an update, and return the values to log.

        An update whose `grad_norm` is not finite has changed no weight. The
        norm of such an update is logged as 0. If the scale is already 1,
        overflow cannot be the cause, and the norm itself is logged.
        """
        finite = tf.math.is_finite(grad_norm)
        scale = self.scale.read_value()
        overflowed = ~finite & (scale > 1.0)
        good = tf.where(finite, self.good_steps + 1, 0)
        grows = good >= self._growth_steps
        grown = tf.where(grows, scale * 2.0, scale)
        # An infinite scale could never be halved to a finite number.
        grown = tf.where(tf.math.is_finite(grown), grown, scale)
        fallen = tf.maximum(scale / 2.0, 1.0)
        self.scale.assign(tf.where(finite, grown, fallen))
        self.good_steps.assign(tf.where(grows, tf.zeros_like(good), good))
        skipped = self.skipped_updates + tf.cast(~finite, tf.int64)
        self.skipped_updates.assign(skipped)
        return {
            "grad_norm": tf.where(overflowed, 0.0, grad_norm),
            SCALE: scale,
            SKIPPED: tf.cast(~finite, tf.float32),
            SKIPPED_IN_ALL: tf.cast(skipped, tf.float32),
        }

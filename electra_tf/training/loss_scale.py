# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loss scaling: keeps float16 gradients from vanishing.

float16 has no numbers between 0 and 6e-8, where many gradients are. So the
loss is multiplied before its gradient is taken, and the float32 gradients of
the weights are divided. The factor is as large as the gradients allow: it
doubles after many good steps, and halves when one overflows, whose update is
skipped.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from electra_tf.training.interval import Interval

# Names of the values that are logged with it.
SCALE, SKIPPED, SKIPPED_IN_ALL = "loss_scale", "skipped", "skipped_updates"


class LossScale(tf.Module):
    """A factor of the loss that follows the gradients.

    All factors are powers of two, which change no digit of a gradient.

    Args:
      initial: the first factor.
      growth_steps: good steps in a row after which it doubles.

    Attributes:
      scale: float32 scalar, the factor.
      good_steps: int64 scalar, steps since it last changed.
      skipped_updates: int64 scalar, how many updates were skipped so far.

    Source: Micikevicius et al., Mixed Precision Training (2018), section 3.2.
    """

    def __init__(
        self, initial: float = 2.0**15, growth_steps: int = 2000
    ) -> None:
        super().__init__(name="loss_scale")
        self._growth_steps = growth_steps

        def variable(value: float, dtype: tf.DType) -> tf.Variable:
            return tf.Variable(value, trainable=False, dtype=dtype)

        self.scale = variable(initial, tf.float32)
        self.good_steps = variable(0, tf.int64)
        self.skipped_updates = variable(0, tf.int64)

    @classmethod
    def of(cls, mixed_precision: str) -> "LossScale | None":
        """Returns what a precision needs: a scale for "fp16", else None."""
        return cls() if mixed_precision == "fp16" else None

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        """Multiplies a loss (float32 scalar)."""
        return loss * self.scale

    def unscaled(self, gradients: Sequence[Any]) -> list[Any]:
        """Divides gradients of a scaled loss; None stays None."""
        inverse = 1.0 / self.scale

        def divided(gradient: Any) -> Any:
            if isinstance(gradient, tf.IndexedSlices):
                return tf.IndexedSlices(
                    gradient.values * inverse,
                    gradient.indices,
                    gradient.dense_shape,
                )
            return None if gradient is None else gradient * inverse

        return [divided(gradient) for gradient in gradients]

    def update(self, grad_norm: tf.Tensor) -> dict[str, tf.Tensor]:
        """Adapts the factor after an update.

        Args:
          grad_norm: float32 scalar, the norm of all gradients; where it is
            not finite the update has changed no weight.

        Returns:
          float32 scalars to log: `grad_norm`, 0 for a skipped update, but as
          it is where the factor cannot fall any more and the trouble must be
          another; `loss_scale` (that of this step), `skipped` (0 or 1) and
          `skipped_updates` (so far).
        """
        finite = tf.math.is_finite(grad_norm)
        scale = self.scale.read_value()
        excused = ~finite & (scale > 1.0)
        good = tf.where(finite, self.good_steps + 1, 0)
        grows = good >= self._growth_steps
        grown = tf.where(grows, scale * 2.0, scale)
        # A factor that overflows itself would never come down again.
        grown = tf.where(tf.math.is_finite(grown), grown, scale)
        fallen = tf.maximum(scale / 2.0, 1.0)
        self.scale.assign(tf.where(finite, grown, fallen))
        self.good_steps.assign(tf.where(grows, tf.zeros_like(good), good))
        skipped = self.skipped_updates + tf.cast(~finite, tf.int64)
        self.skipped_updates.assign(skipped)
        return {
            "grad_norm": tf.where(excused, 0.0, grad_norm),
            SCALE: scale,
            SKIPPED: tf.cast(~finite, tf.float32),
            SKIPPED_IN_ALL: tf.cast(skipped, tf.float32),
        }


def log_values(interval: Interval) -> dict[str, float]:
    """What a log row says of the gradients.

    Args:
      interval: the steps since the last row.

    Returns:
      `grad_norm`, the mean over the updates that were made; with loss scaling
      also the last `loss_scale` and the `skipped_updates` of the run so far.
    """
    if SCALE not in interval.last:
        return {"grad_norm": interval.mean("grad_norm")}
    made = interval.steps - interval.sums[SKIPPED]
    return {
        "grad_norm": interval.sums["grad_norm"] / max(made, 1.0),
        SCALE: interval.last[SCALE],
        SKIPPED_IN_ALL: interval.last[SKIPPED_IN_ALL],
    }


def shown_items(row: dict[str, Any]) -> dict[str, str]:
    """Items of the progress line: nothing before an update was skipped."""
    if not row.get(SKIPPED_IN_ALL):
        return {}
    return {"skipped": f"{row[SKIPPED_IN_ALL]:.0f}"}

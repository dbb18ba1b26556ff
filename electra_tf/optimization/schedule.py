# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning rate: polynomial decay multiplied by linear warm-up."""

import dataclasses

import tensorflow as tf

READ_ORDERS = ("after_increment", "before_increment")


@dataclasses.dataclass(frozen=True)
class WarmupPolynomialDecay:
    """The learning rate of every update.

    The decay is not shifted by the warm-up: with W warm-up and T total steps
    the peak is learning_rate * (1 - W / T).

    Attributes:
      learning_rate: rate at step 0 without warm-up.
      num_train_steps: T, updates after which the rate is 0.
      num_warmup_steps: W, updates of linear warm-up; 0 for none. May be a
        fraction, as fine-tuning's proportion of T gives.
      power: of the decay; 1 is linear.
      read_order: "after_increment" reads update k's rate (k = 1, 2, ...) at
        step k, as the original was observed to do: its graph leaves the order
        open. "before_increment" reads it at k - 1, so that the first update
        of a warm-up has rate 0.

    Source: google-research/electra, model/optimization.py, create_optimizer.

    Differs: a warm-up of 0 means none under either order; the original
    divides 0 by 0 under the second.
    """

    learning_rate: float
    num_train_steps: int
    num_warmup_steps: float = 0
    power: float = 1.0
    read_order: str = "after_increment"

    def __post_init__(self) -> None:
        if self.read_order not in READ_ORDERS:
            raise ValueError(
                f"lr_read_order is {self.read_order!r}; expected one of "
                f"{', '.join(READ_ORDERS)}."
            )

    def __call__(self, completed_updates: tf.Tensor) -> tf.Tensor:
        """Returns the rate of the next update.

        Args:
          completed_updates: int64 scalar, updates made so far.

        Returns:
          float32 scalar.
        """
        step = tf.cast(completed_updates, tf.float32)
        if self.read_order == "after_increment":
            step += 1.0
        total = tf.constant(self.num_train_steps, tf.float32)
        remaining = 1.0 - tf.minimum(step, total) / total
        rate = self.learning_rate * tf.pow(remaining, self.power)
        if self.num_warmup_steps > 0:
            rate *= tf.minimum(1.0, step / float(self.num_warmup_steps))
        return rate

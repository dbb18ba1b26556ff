# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing, which saves memory but repeats the forward pass.

Only the input of each transformer block is kept for the gradient; the backward
pass recomputes the block's activations.
"""

from collections.abc import Callable

import tensorflow as tf
from absl import logging

from electra_tf.modeling.batch_tokens import BatchTokens
from electra_tf.modeling.seeds import SeedStream


def run_checkpointed(
    block: Callable[..., tuple[tf.Tensor, tf.Tensor]],
    hidden: tf.Tensor,
    bias: tf.Tensor,
    seeds: SeedStream,
    tokens: BatchTokens | None = None,
) -> tf.Tensor:
    """Return a block's output; only `hidden` is kept for the gradient.

    The recomputation equals the first computation, because `seeds` determines
    all draws.
    """
    return tf.recompute_grad(lambda x: block(x, bias, seeds, tokens)[0])(hidden)


def needs_checkpointing(
    recompute_grad: bool | None, needed_bytes: int, limit_bytes: float
) -> bool:
    """Return whether training uses activation checkpointing.

    The decision depends on the machine's total memory, not on the free memory,
    so that a continued run on the same machine computes as before.

    Args:
      recompute_grad: the hparam, which takes precedence unless it is None.
      needed_bytes: estimated memory of training without recomputation.
      limit_bytes: part of the machine's memory that training may use.
    """
    if recompute_grad is not None:
        return recompute_grad
    strategy = tf.distribute.get_strategy()
    devices = tf.config.list_physical_devices()
    # TensorFlow does not report the memory of accelerators, so there is no
    # limit to compare with.
    if isinstance(strategy, tf.distribute.TPUStrategy) or any(
        device.device_type != "CPU" for device in devices
    ):
        return False
    if needed_bytes <= limit_bytes:
        return False
    logging.log_first_n(
        logging.WARNING,
        "Keeping all activations would need about %.1f GiB, but training may"
        " use %.1f GiB of this machine's memory. Activations inside blocks are"
        " therefore recomputed, which takes about 1.4 times as long. Set"
        " recompute_grad to true or false to override this choice.",
        1,
        needed_bytes / 2**30,
        limit_bytes / 2**30,
    )
    return True

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modes of graph tracing: inference, and fusion of operations by XLA."""

import contextlib
import contextvars
import functools
from collections.abc import Iterator

import tensorflow as tf

_INFERENCE = contextvars.ContextVar("inference", default=False)


@contextlib.contextmanager
def inference() -> Iterator[None]:
    """Trace the graphs in a `with` block for inference, not for training.

    In this mode, layers omit their custom gradients. Custom gradients wrap
    operations in functions, which prevent TensorFlow from fusing a product, its
    bias and GELU into one kernel, and LiteRT and ONNX from recognizing these
    operations. Values are equal up to rounding.
    """
    token = _INFERENCE.set(True)
    try:
        yield
    finally:
        _INFERENCE.reset(token)


def is_inference() -> bool:
    """Return whether the caller runs inside an `inference` block."""
    return _INFERENCE.get()


def fuses(*tensors: tf.Tensor) -> bool:
    """Return whether XLA should fuse elementwise operations on these tensors.

    TensorFlow runs each operation separately, through memory, but on all
    threads, whereas XLA's fused loops run on one thread. Fusing is therefore
    faster if each operation has only one thread. XLA compiles again for each
    shape, so the shapes must be known.
    """
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    if is_inference() or tf.executing_eagerly() or threads != 1:
        return False
    if tf.config.get_visible_devices("GPU"):
        return False
    return all(tensor.shape.is_fully_defined() for tensor in tensors)


# Decorator of functions that XLA compiles. All layers share the decorated
# functions, so that XLA compiles each function once per shape.
compiled = functools.partial(
    tf.function, autograph=False, jit_compile=True, reduce_retracing=False
)

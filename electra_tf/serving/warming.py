# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A first call to each function, which is slow, before anybody waits for it."""

import logging

import numpy as np
import tensorflow as tf

from electra_tf.serving.served_model import ServedModel, Signature

_logger = logging.getLogger(__name__)


def warm_up(model: ServedModel) -> list[str]:
    """Calls every function with one small row."""
    warmed = []
    for name, signature in model.signatures.items():
        try:
            signature(_small_row(signature))
        except tf.errors.OpError as error:
            _logger.info("%s was not warmed up: %s", name, error)
        else:
            warmed.append(name)
    return warmed


def _small_row(signature: Signature) -> dict[str, np.ndarray]:
    arrays = {}
    for name, info in signature.inputs.items():
        if name in signature.defaults or info.shape is None:
            continue
        shape = [1 if size is None else size for size in info.shape]
        if info.dtype == tf.string:
            arrays[name] = np.full(shape, b"a", object)
        else:
            arrays[name] = np.ones(shape, info.dtype.as_numpy_dtype)
    return arrays

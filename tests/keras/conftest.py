# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib

import pytest
import tensorflow as tf

from electra_tf.keras import Encoder
from tests.conftest import TINY

SIZES = TINY["model_hparam_overrides"] | {"embedding_size": 8}


@pytest.fixture(scope="session")
def make_encoder(roughen):
    """Return a factory of tiny encoders with weights that make a difference."""

    def make(**changes):
        arguments = SIZES | {"seed": 1} | changes
        encoder = Encoder(200, **arguments)
        roughen(encoder.weights)
        return encoder

    return make


@pytest.fixture(scope="session")
def texts():
    return tf.constant(["the of and", "a", "in that is for", "the a the a"])


@pytest.fixture(scope="session")
def on_two_devices(run_python, tiny_vocab):
    """Return the result of `two_devices.py`."""
    program = pathlib.Path(__file__).with_name("two_devices.py")
    done = run_python(program, tiny_vocab)
    return json.loads(done.stdout.partition("RESULT")[2])

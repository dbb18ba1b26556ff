# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What layers are made of: seeds, names, dense, layer norm, activations."""

import contextlib
import contextvars
import functools
import math
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tf_keras

from configure.errors import UserError

_INFERENCE = contextvars.ContextVar("inference", default=False)


@contextlib.contextmanager
def inference() -> Iterator[None]:
    """Within it, graphs are traced for what they answer, not for training.

    The layers leave out the gradients that they bring along, whose wrappings
    keep TensorFlow from computing a product, its bias and the GELU after it in
    one kernel, and LiteRT and ONNX from knowing them. Values are the same up
    to rounding.
    """
    token = _INFERENCE.set(True)
    try:
        yield
    finally:
        _INFERENCE.reset(token)


class SeedStream:
    """Hands out one independent seed per named site.

    The graph holds no generator state, so a restored run draws what the
    uninterrupted one would have drawn.

    Args:
      seed: int32 [2]; by convention the run's seed and the step.
    """

    def __init__(self, seed: tf.Tensor, scope: str = "") -> None:
        self._seed = seed
        self._scope = scope

    def child(self, scope: str) -> "SeedStream":
        """The same stream for a sub-scope of sites."""
        return SeedStream(self._seed, f"{self._scope}{scope}/")

    def seed(self, site: str) -> tf.Tensor:
        """The int32 [2] seed of a site, for tf.random.stateless_* functions."""
        key = zlib.crc32((self._scope + site).encode()) & 0x7FFFFFFF
        return tf.random.experimental.stateless_fold_in(self._seed, key)


def initializer_seed(seed: int, variable_name: str) -> int:
    """Returns the seed of one variable's initial value, by its name only."""
    return zlib.crc32(f"{seed}:{variable_name}".encode()) & 0x7FFFFFFF


class ScopedLayer(tf_keras.layers.Layer):
    """A layer whose variables carry the original's TF1 scope in their names.

    Variables are made in the constructor, so a model is complete (and can be
    restored into) before it has seen data.
    """

    def __init__(self, scope: str, seed: int = 0) -> None:
        # Keras would turn half precision inputs back into float32.
        # Nor does Keras's global policy reach in: `ComputePolicy` decides.
        super().__init__(
            name=scope.replace("/", "_"), dtype="float32", autocast=False
        )
        self.scope = scope
        self.seed = seed
        self.built = True

    def scoped_weight(
        self,
        name: str,
        shape: list[int],
        init: str,
        stddev: float = 0.02,
        drawn_as: str | None = None,  # the name whose initial values it has
    ) -> tf.Variable:
        """Creates a trainable float32 variable named `<scope>/<name>`."""
        full_name = f"{self.scope}/{name}"
        seed = initializer_seed(self.seed, f"{self.scope}/{drawn_as or name}")
        initializer: Any = {
            "normal": tf_keras.initializers.TruncatedNormal(
                stddev=stddev, seed=seed
            ),
            "glorot": tf_keras.initializers.GlorotUniform(seed=seed),
            "zeros": tf_keras.initializers.Zeros(),
            "ones": tf_keras.initializers.Ones(),
        }[init]
        return self.add_weight(
            name=full_name,
            shape=shape,
            initializer=initializer,
            # All replicas make the same update of summed gradients.
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )


class Dense(ScopedLayer):
    """Affine map over the last axis, with an optional activation.

    Args:
      scope: TF1 scope of `kernel` [in_width, units] and `bias` [units].
      stddev: of the truncated-normal kernel; None means Glorot uniform, which
        is what the original gets wherever it names no initializer.
    """

    def __init__(
        self,
        scope: str,
        in_width: int,
        units: int,
        activation: str | None = None,
        stddev: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.in_width, self.units = in_width, units
        self._activation = activation_function(activation)
        init = "glorot" if stddev is None else "normal"
        self.kernel = self.scoped_weight(
            "kernel", [in_width, units], init, stddev or 0.0
        )
        self.bias = self.scoped_weight("bias", [units], "zeros")

    def call(self, inputs: tf.Tensor, train_bias: bool = True) -> tf.Tensor:
        """Maps float [..., in_width] to [..., units]."""
        flat = tf.reshape(inputs, [-1, self.in_width])
        kernel = tf.cast(self.kernel, flat.dtype)
        flat = affine(flat, kernel, tf.cast(self.bias, flat.dtype), train_bias)
        if self._activation is not None:
            flat = self._activation(flat)
        if inputs.shape.rank == 2:
            return flat
        leading = static_or_dynamic_shape(inputs)[:-1]
        return tf.reshape(flat, [*leading, self.units])


def affine(
    rows: tf.Tensor,
    kernel: tf.Tensor | tf.Variable,
    bias: tf.Tensor | tf.Variable,
    train_bias: bool = True,
) -> tf.Tensor:
    """Returns rows [R, K] @ kernel [K, U] + bias [U]: float [R, U].

    With a gradient made for CPUs; within `inference` it is TensorFlow's.
    """
    if _INFERENCE.get():
        return tf.nn.bias_add(tf.matmul(rows, kernel), bias)

    @tf.custom_gradient
    def product(rows: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
        def gradient(upstream: tf.Tensor):
            return (
                tf.matmul(upstream, kernel, transpose_b=True),
                _kernel_gradient(rows, upstream),
                tf.raw_ops.BiasAddGrad(out_backprop=upstream)
                if train_bias
                else tf.zeros_like(bias),
            )

        return tf.nn.bias_add(tf.matmul(rows, kernel), bias), gradient

    return product(
        rows, tf.convert_to_tensor(kernel), tf.convert_to_tensor(bias)
    )


def _kernel_gradient(rows: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Returns rows^T @ upstream, [K, U].

    oneDNN's product is half as fast when it reads a long operand of 512 or
    more columns downwards. So the wider operand is turned first, and stands on
    the left; where that is `upstream`, the product is turned back.
    """
    width, units = rows.shape[-1], upstream.shape[-1]
    if max(width, units) < 512 or not _onednn():
        return tf.matmul(rows, upstream, transpose_a=True)
    if width >= units:
        return tf.matmul(_turned(rows), upstream)
    return tf.transpose(tf.matmul(_turned(upstream), rows))


def _onednn() -> bool:
    """Tells whether matrix products are oneDNN's, as `electra_tf` asks for."""
    asked = os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "1"
    return asked and not tf.config.list_physical_devices("GPU")


def _turned(matrix: tf.Tensor) -> tf.Tensor:
    """Transposes in memory, [R, C] to [C, R].

    Of three axes, because a plain transpose is merged into the product after
    it by TensorFlow's graph optimizer.
    """
    width = matrix.shape[-1]
    pages = tf.transpose(tf.reshape(matrix, [1, -1, width]), [2, 0, 1])
    return tf.reshape(pages, [width, -1])


class LayerNorm(ScopedLayer):
    """Normalizes the last axis to zero mean and unit variance, then scales.

    Source: tf.contrib.layers.layer_norm as called by the original.
    """

    def __init__(
        self, scope: str, width: int, seed: int = 0, epsilon: float = 1e-12
    ) -> None:
        super().__init__(scope, seed)
        self.width, self.epsilon = width, epsilon
        self.beta = self.scoped_weight("LayerNorm/beta", [width], "zeros")
        self.gamma = self.scoped_weight("LayerNorm/gamma", [width], "ones")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Maps float [..., width] to the same; half precision in float32."""
        gamma = tf.convert_to_tensor(self.gamma)
        beta = tf.convert_to_tensor(self.beta)
        wide = tf.cast(inputs, gamma.dtype)
        if _INFERENCE.get():
            outputs = _normalized(wide, self.epsilon)[0] * gamma + beta
        else:
            outputs = _layer_norm(wide, gamma, beta, self.epsilon)
        return tf.cast(outputs, inputs.dtype)


def _normalized(
    inputs: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Inputs of mean 0 and variance 1, and 1 over the standard deviation."""
    centered = inputs - tf.reduce_mean(inputs, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), -1, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)
    return centered * inverse, inverse


def _layer_norm(
    inputs: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float = 1e-12
) -> tf.Tensor:
    """Layer norm whose gradient is written out.

    Automatic differentiation goes through the broadcasts of mean and variance
    one operation at a time, several times the memory traffic.
    """

    @tf.custom_gradient
    def normalize(inputs: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor):
        normalized, inverse = _normalized(inputs, epsilon)

        def gradient(upstream: tf.Tensor):
            width = inputs.shape[-1]
            product = upstream * normalized
            gamma_gradient = tf.raw_ops.BiasAddGrad(
                out_backprop=tf.reshape(product, [-1, width])
            )
            beta_gradient = tf.raw_ops.BiasAddGrad(
                out_backprop=tf.reshape(upstream, [-1, width])
            )
            scaled = upstream * gamma
            mean = tf.reduce_mean(scaled, -1, keepdims=True)
            along = tf.reduce_mean(product * gamma, -1, keepdims=True)
            inputs_gradient = inverse * (scaled - mean - normalized * along)
            return inputs_gradient, gamma_gradient, beta_gradient

        return normalized * gamma + beta, gradient

    return normalize(inputs, gamma, beta)


def gelu(inputs: tf.Tensor) -> tf.Tensor:
    """Gaussian error linear unit in its exact (erf) form.

    Source: google-research/electra, model/modeling.py, gelu.
    """
    if _INFERENCE.get():  # The form that TensorFlow and converters look for.
        return 0.5 * inputs * (1.0 + tf.math.erf(inputs * math.sqrt(0.5)))
    return _gelu(inputs)


@tf.custom_gradient
def _gelu(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """Gives the gradient, too, with the slope made in the forward pass.

    So one tensor is kept for it instead of two (`inputs` and `cdf`). Where no
    gradient is asked for, TensorFlow removes the slope from the graph.
    """
    scaled = inputs * math.sqrt(0.5)
    # Not erfc, which would do with one operation less: TensorFlow's takes
    # three times as long as its erf.
    cdf = 0.5 + 0.5 * tf.math.erf(scaled)
    density = tf.exp(-tf.square(scaled))
    density *= inputs * (1.0 / math.sqrt(2.0 * math.pi))
    slope = cdf + density
    return inputs * cdf, lambda upstream: upstream * slope


def dropout(
    inputs: tf.Tensor, rate: float, seed: tf.Tensor | None
) -> tf.Tensor:
    """Zeroes elements with probability `rate` and rescales the others.

    Without a seed (int32 [2]) nothing is dropped, as in evaluation.

    Source: google-research/electra, model/modeling.py, dropout.

    Differs: each element takes 16 random bits, half of what a float32 uniform
    takes, so the rate is rounded to a multiple of 1 / 65536 (0.1 becomes
    0.100006); the rescaling uses the rounded rate, the mean stays exact. In
    half precision the rate is the nearest one that the dtype can rescale by
    exactly: 0.0986 for 0.1 in bfloat16.
    """
    if seed is None or not rate:
        return inputs
    threshold = round(rate * 65536)
    if not 0 <= threshold < 65536:
        raise ValueError(f"The dropout rate must be in [0, 1), not {rate}.")
    if inputs.dtype.size < 4:
        scale = inputs.dtype.as_numpy_dtype(65536.0 / (65536 - threshold))
        threshold = 65536 - round(65536 / float(scale))
    # Not before the inputs: all masks of a step would be drawn at its start
    # and fetched from memory again when they are used.
    with tf.control_dependencies([inputs]):
        seed = tf.identity(seed)
    shape = tf.shape(inputs)
    size = tf.reduce_prod(shape)
    bits = tf.random.stateless_uniform(
        [(size + 1) // 2], seed, None, None, tf.uint32, alg="philox"
    )
    bits = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
    keep = tf.cast(tf.reshape(bits, shape) >= threshold, inputs.dtype)
    scaled_keep = keep * tf.cast(65536.0 / (65536 - threshold), inputs.dtype)
    return inputs * tf.ensure_shape(scaled_keep, inputs.shape)


def activation_function(
    name: str | None,
) -> Callable[[tf.Tensor], tf.Tensor] | None:
    """Finds an activation; None for "linear", "" or None, the identity.

    Source: google-research/electra, model/modeling.py, get_activation.
    """
    functions = {"gelu": gelu, "relu": tf.nn.relu, "tanh": tf.tanh}
    functions["gelu_new"] = functools.partial(tf.nn.gelu, approximate=True)
    key = (name or "linear").lower()
    if key == "linear":
        return None
    if key not in functions:
        raise UserError(
            f"hidden_act: unsupported activation {name!r}; expected one of "
            "gelu_new, gelu, relu, tanh, linear."
        )
    return functions[key]


def static_or_dynamic_shape(tensor: tf.Tensor) -> list[Any]:
    """Returns each dimension as an int where known, else as a scalar tensor."""
    dynamic = tf.shape(tensor)
    return [
        dynamic[axis] if size is None else size
        for axis, size in enumerate(tensor.shape.as_list())
    ]

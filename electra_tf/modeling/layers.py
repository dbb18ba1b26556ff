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


def _fuses(*tensors: tf.Tensor) -> bool:
    """Whether XLA is to make one loop of what is done with tensors.

    TensorFlow runs one operation after the other, each through memory, but on
    all threads, XLA's loops on one. So where an operation has one anyway. XLA
    compiles anew for every shape, so these must be known.
    """
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    if _INFERENCE.get() or tf.executing_eagerly() or threads != 1:
        return False
    if tf.config.get_visible_devices("GPU"):
        return False
    return all(tensor.shape.is_fully_defined() for tensor in tensors)


# The same in all layers, so that it is compiled once for each shape.
_compiled = functools.partial(
    tf.function, autograph=False, jit_compile=True, reduce_retracing=False
)


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
        # The initial value goes by the variable's name only.
        key = f"{self.seed}:{self.scope}/{drawn_as or name}"
        seed = zlib.crc32(key.encode()) & 0x7FFFFFFF
        kinds = tf_keras.initializers
        initializer: Any = {
            "normal": kinds.TruncatedNormal(stddev=stddev, seed=seed),
            "glorot": kinds.GlorotUniform(seed=seed),
            "zeros": kinds.Zeros(),
            "ones": kinds.Ones(),
        }[init]
        return self.add_weight(
            name=f"{self.scope}/{name}",
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

    return product(rows, *map(tf.convert_to_tensor, (kernel, bias)))


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

    def call(
        self,
        inputs: tf.Tensor,
        residual: tf.Tensor | None = None,
        rate: float = 0.0,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Maps float [..., width] to the same; half precision in float32.

        Given a `residual`, of inputs after dropout and that together.
        """
        gamma = tf.convert_to_tensor(self.gamma)
        beta = tf.convert_to_tensor(self.beta)
        if residual is not None:
            if _fuses(inputs, residual):
                tensors = inputs, residual, gamma, beta
                rate = 0.0 if seed is None else rate
                return _fused_norm(*tensors, rate, seed, self.epsilon)
            inputs = dropout(inputs, rate, seed) + residual
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
            return _norm_gradient(upstream, normalized, inverse, gamma)

        return normalized * gamma + beta, gradient

    return normalize(inputs, gamma, beta)


def _norm_gradient(
    upstream: tf.Tensor,
    normalized: tf.Tensor,
    inverse: tf.Tensor,
    gamma: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The gradients of a layer norm's inputs, gamma and beta."""
    width = gamma.shape[0]
    product = upstream * normalized
    gamma_gradient, beta_gradient = (
        tf.raw_ops.BiasAddGrad(out_backprop=tf.reshape(x, [-1, width]))
        for x in (product, upstream)
    )
    scaled = upstream * gamma
    mean = tf.reduce_mean(scaled, -1, keepdims=True)
    along = tf.reduce_mean(product * gamma, -1, keepdims=True)
    inputs_gradient = inverse * (scaled - mean - normalized * along)
    return inputs_gradient, gamma_gradient, beta_gradient


def _fused_norm(
    inputs: tf.Tensor,
    residual: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    *settings: Any,  # rate, seed, epsilon
) -> tf.Tensor:
    """Layer norm of dropout(inputs) + residual; keeps the sum alone.

    For the gradient the mask is drawn again, and the sum normalized again.
    """

    @tf.custom_gradient
    def normalize(*tensors: tf.Tensor):
        outputs, total = _sum_and_norm(*tensors, *settings)
        return outputs, lambda upstream: _sum_and_norm_gradient(
            upstream, total, gamma, *settings
        )

    return normalize(inputs, residual, gamma, beta)


@_compiled
def _sum_and_norm(
    inputs: tf.Tensor,
    residual: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    rate: float,
    seed: tf.Tensor | None,
    epsilon: float,
) -> tuple[tf.Tensor, tf.Tensor]:
    total = dropout(inputs, rate, seed, fused=True) + residual
    normalized, _ = _normalized(tf.cast(total, gamma.dtype), epsilon)
    return tf.cast(normalized * gamma + beta, inputs.dtype), total


@_compiled
def _sum_and_norm_gradient(
    upstream: tf.Tensor,
    total: tf.Tensor,
    gamma: tf.Tensor,
    rate: float,
    seed: tf.Tensor | None,
    epsilon: float,
) -> tuple[tf.Tensor, ...]:
    wide = tf.cast(total, gamma.dtype)
    change, *others = _norm_gradient(
        tf.cast(upstream, gamma.dtype), *_normalized(wide, epsilon), gamma
    )
    change = tf.cast(change, total.dtype)
    return dropout(change, rate, seed, fused=True), change, *others


def gelu(inputs: tf.Tensor) -> tf.Tensor:
    """Gaussian error linear unit in its exact (erf) form.

    Source: google-research/electra, model/modeling.py, gelu.
    """
    if _INFERENCE.get():  # The form that TensorFlow and converters look for.
        return 0.5 * inputs * (1.0 + tf.math.erf(inputs * math.sqrt(0.5)))
    return _fused_gelu(inputs) if _fuses(inputs) else _gelu(inputs)


@tf.custom_gradient
def _gelu(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """Gives the gradient, too, with the slope made in the forward pass.

    So one tensor is kept for it instead of two (`inputs` and `cdf`). Where no
    gradient is asked for, TensorFlow removes the slope from the graph.
    """
    cdf, slope = _cdf_and_slope(inputs)
    return inputs * cdf, lambda upstream: upstream * slope


def _cdf_and_slope(inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    scaled = inputs * math.sqrt(0.5)
    # Not erfc, which would do with one operation less: TensorFlow's takes
    # three times as long as its erf.
    cdf = 0.5 + 0.5 * tf.math.erf(scaled)
    density = tf.exp(-tf.square(scaled))
    density *= inputs * (1.0 / math.sqrt(2.0 * math.pi))
    return cdf, cdf + density


@tf.custom_gradient
def _fused_gelu(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """The same; XLA takes longer for both at once than one by one."""
    return _gelu_alone(inputs), lambda upstream: _gelu_gradient(
        upstream, inputs
    )


@_compiled
def _gelu_alone(inputs: tf.Tensor) -> tf.Tensor:
    wide = tf.cast(inputs, tf.float32)
    return tf.cast(wide * _cdf_and_slope(wide)[0], inputs.dtype)


@_compiled
def _gelu_gradient(upstream: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
    upstream, wide = (tf.cast(x, tf.float32) for x in (upstream, inputs))
    return tf.cast(upstream * _cdf_and_slope(wide)[1], inputs.dtype)


def dropout(
    inputs: tf.Tensor,
    rate: float,
    seed: tf.Tensor | None,
    fused: bool = False,  # whether XLA compiles it
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
    if fused:  # What XLA makes of a bitcast takes four times as long.
        low = tf.bitwise.bitwise_and(bits, 0xFFFF)
        high = tf.bitwise.right_shift(bits, 16)
        bits = tf.cast(tf.stack([low, high], -1), tf.int32)
    else:
        bits = tf.bitcast(bits, tf.uint16)
    bits = tf.reshape(tf.reshape(bits, [-1])[:size], shape)
    keep = tf.cast(bits >= threshold, inputs.dtype)
    scaled_keep = keep * tf.cast(65536.0 / (65536 - threshold), inputs.dtype)
    return inputs * tf.ensure_shape(scaled_keep, inputs.shape)


def dropout_alone(inputs: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """The same, for whoever brings the gradient."""
    if _fuses(inputs):
        return _compiled_dropout(inputs, rate, seed, fused=True)
    return dropout(inputs, rate, seed)


_compiled_dropout = _compiled(dropout)


def activation_function(
    name: str | None,
) -> Callable[[tf.Tensor], tf.Tensor] | None:
    """Finds an activation; None for "linear", "" or None, the identity.

    Source: google-research/electra, model/modeling.py, get_activation.
    """
    functions = {"gelu": gelu, "relu": tf.nn.relu, "tanh": tf.tanh}
    functions["gelu_new"] = functools.partial(tf.nn.gelu, approximate=True)
    functions["linear"] = None
    key = (name or "linear").lower()
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

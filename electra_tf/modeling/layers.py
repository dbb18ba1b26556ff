# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Base class of layers, dense layer and layer norm.

The variables have the original's names.
"""

import os
import zlib
from typing import Any

import tensorflow as tf
import tf_keras

from electra_tf.modeling.activations import (
    activation_function,
    gelu,
    gelu_gradient,
    gelu_without_gradient,
)
from electra_tf.modeling.dropout import dropout
from electra_tf.modeling.graph_modes import compiled, fuses, is_inference


class ScopedLayer(tf_keras.layers.Layer):
    """A layer whose variables have the original's TF1 scope in their names.

    The constructor creates all variables, so that checkpoints can be restored
    into a model before it has processed data.
    """

    def __init__(self, scope: str, seed: int = 0) -> None:
        # Keras would cast half-precision inputs to float32, and would apply its
        # global policy. Only `ComputePolicy` sets the dtype of a block.
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
        drawn_as: str | None = None,
    ) -> tf.Variable:
        """Create a trainable float32 variable named `<scope>/<name>`.

        Args:
          name: name below the layer's scope.
          shape: shape of the variable.
          init: "normal" (truncated), "glorot" (uniform), "zeros" or "ones".
          stddev: standard deviation of the normal distribution.
          drawn_as: name that determines the initial values; None: `name`.
        """
        # The seed depends only on `self.seed` and the name, so that a
        # variable's initial value does not depend on the other variables of a
        # model.
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
            # All replicas compute the same update from summed gradients, so the
            # variable takes the update of the first replica.
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )


class Dense(ScopedLayer):
    """Affine map over the last axis, with an optional activation.

    Args:
      scope: TF1 scope of `kernel` [in_width, units] and `bias` [units].
      in_width: size of the last axis of the inputs.
      units: size of the last axis of the outputs.
      activation: name for `activation_function`; None: the identity.
      stddev: standard deviation of the truncated-normal kernel; None: Glorot
        uniform, as in layers for which the original names no initializer.
      seed: seed of the initial values.
      input_activation: name of an activation that is applied to the inputs
        before the map.
    """

    def __init__(
        self,
        scope: str,
        in_width: int,
        units: int,
        activation: str | None = None,
        stddev: float | None = None,
        seed: int = 0,
        input_activation: str | None = None,
    ) -> None:
        super().__init__(scope, seed)
        self.in_width, self.units = in_width, units
        self._activation = activation_function(activation)
        self._input_activation = activation_function(input_activation)
        init = "glorot" if stddev is None else "normal"
        self.kernel = self.scoped_weight(
            "kernel", [in_width, units], init, stddev or 0.0
        )
        self.bias = self.scoped_weight("bias", [units], "zeros")

    def call(self, inputs: tf.Tensor, train_bias: bool = True) -> tf.Tensor:
        """Map a float tensor [..., in_width] to [..., units].

        Without `train_bias` the gradient of the bias is 0.
        """
        flat = inputs
        # TensorFlow fuses GELU with the product before it only if no reshape
        # is between them.
        if inputs.shape.rank != 2:
            flat = tf.reshape(inputs, [-1, self.in_width])
        kernel = tf.cast(self.kernel, flat.dtype)
        bias = tf.cast(self.bias, flat.dtype)
        if self._input_activation is gelu and train_bias and fuses(flat):
            flat = _affine_of_gelu(flat, kernel, bias)
        else:
            if self._input_activation is not None:
                flat = self._input_activation(flat)
            flat = affine(flat, kernel, bias, train_bias)
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
    """Return rows [R, K] @ kernel [K, U] + bias [U]: float [R, U].

    The custom gradient is fast on CPUs; inside `inference`, TensorFlow's
    gradient is used. Without `train_bias` the gradient of the bias is 0.
    """
    if is_inference():
        return tf.nn.bias_add(tf.matmul(rows, kernel), bias)

    @tf.custom_gradient
    def product(rows: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
        def gradient(upstream: tf.Tensor):
            if train_bias:
                bias_gradient = tf.raw_ops.BiasAddGrad(out_backprop=upstream)
            else:
                bias_gradient = tf.zeros_like(bias)
            return (
                tf.matmul(upstream, kernel, transpose_b=True),
                _kernel_gradient(rows, upstream),
                bias_gradient,
            )

        return tf.nn.bias_add(tf.matmul(rows, kernel), bias), gradient

    return product(rows, *map(tf.convert_to_tensor, (kernel, bias)))


def _affine_of_gelu(
    inputs: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor
) -> tf.Tensor:
    """Return gelu(inputs) @ kernel + bias.

    Only the inputs are kept for the gradient, which computes GELU again.
    """

    @tf.custom_gradient
    def product(inputs: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
        def gradient(upstream: tf.Tensor):
            rows_gradient = tf.matmul(upstream, kernel, transpose_b=True)
            # TensorFlow would merge equal operations of the two passes.
            with tf.control_dependencies([rows_gradient]):
                again = gelu_without_gradient(tf.identity(inputs))
            return (
                gelu_gradient(rows_gradient, inputs),
                _kernel_gradient(again, upstream),
                tf.raw_ops.BiasAddGrad(out_backprop=upstream),
            )

        rows = gelu_without_gradient(inputs)
        return tf.nn.bias_add(tf.matmul(rows, kernel), bias), gradient

    return product(inputs, kernel, bias)


def _kernel_gradient(rows: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Return the gradient of the kernel, rows^T @ upstream: [K, U].

    oneDNN's product is half as fast if it reads a long operand with 512 or more
    columns along its columns. The wider operand is therefore transposed in
    memory and becomes the left operand. If this operand is `upstream`, the
    product is transposed back.
    """
    width, units = rows.shape[-1], upstream.shape[-1]
    if max(width, units) < 512 or not _uses_onednn():
        return tf.matmul(rows, upstream, transpose_a=True)
    if width >= units:
        return tf.matmul(_transposed(rows), upstream)
    return tf.transpose(tf.matmul(_transposed(upstream), rows))


def _uses_onednn() -> bool:
    """Return whether oneDNN computes matrix products."""
    is_enabled = os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "1"
    return is_enabled and not tf.config.list_physical_devices("GPU")


def _transposed(matrix: tf.Tensor) -> tf.Tensor:
    """Transpose a matrix in memory, [R, C] to [C, R].

    The transpose has three axes, because TensorFlow's graph optimizer would
    merge a plain transpose into the following product.
    """
    width = matrix.shape[-1]
    pages = tf.transpose(tf.reshape(matrix, [1, -1, width]), [2, 0, 1])
    return tf.reshape(pages, [width, -1])


class LayerNorm(ScopedLayer):
    """Normalization of the last axis, followed by a learned scale and shift.

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
        """Normalize the last axis of a float tensor [..., width].

        Half precision is normalized in float32.

        Args:
          inputs: [..., width].
          residual: [..., width], added to the inputs after dropout before the
            sum is normalized. None: only the inputs are normalized.
          rate: rate of the dropout.
          seed: int32 [2], seed of the dropout; None: no dropout.
        """
        gamma = tf.convert_to_tensor(self.gamma)
        beta = tf.convert_to_tensor(self.beta)
        if residual is not None:
            if fuses(inputs, residual):
                rate = 0.0 if seed is None else rate
                return _fused_norm(
                    inputs, residual, gamma, beta, rate, seed, self.epsilon
                )
            inputs = dropout(inputs, rate, seed) + residual
        wide = tf.cast(inputs, gamma.dtype)
        if is_inference():
            outputs = _normalized(wide, self.epsilon)[0] * gamma + beta
        else:
            outputs = _layer_norm(wide, gamma, beta, self.epsilon)
        return tf.cast(outputs, inputs.dtype)


def _normalized(
    inputs: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return normalized inputs and the inputs' inverse standard deviation."""
    centered = inputs - tf.reduce_mean(inputs, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), -1, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)
    return centered * inverse, inverse


def _layer_norm(
    inputs: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float = 1e-12
) -> tf.Tensor:
    """Return the layer norm, with a custom gradient.

    Automatic differentiation would process the broadcasts of mean and variance
    one operation at a time, with several times the memory traffic.
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
    """Return the gradients of a layer norm's inputs, gamma and beta."""
    width = gamma.shape[0]
    product = upstream * normalized
    gamma_gradient, beta_gradient = (
        tf.raw_ops.BiasAddGrad(out_backprop=tf.reshape(x, [-1, width]))
        for x in (product, upstream)
    )
    scaled = upstream * gamma
    mean = tf.reduce_mean(scaled, -1, keepdims=True)
    projection = tf.reduce_mean(product * gamma, -1, keepdims=True)
    inputs_gradient = inverse * (scaled - mean - normalized * projection)
    return inputs_gradient, gamma_gradient, beta_gradient


def _fused_norm(
    inputs: tf.Tensor,
    residual: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    rate: float,
    seed: tf.Tensor | None,
    epsilon: float,
) -> tf.Tensor:
    """Return the layer norm of dropout(inputs) + residual.

    Only the sum is kept for the gradient, which draws the mask again and
    normalizes the sum again.
    """
    settings = (rate, seed, epsilon)

    @tf.custom_gradient
    def normalize(*tensors: tf.Tensor):
        outputs, total = _sum_and_norm(*tensors, *settings)
        return outputs, lambda upstream: _sum_and_norm_gradient(
            upstream, total, gamma, *settings
        )

    return normalize(inputs, residual, gamma, beta)


@compiled
def _sum_and_norm(
    inputs: tf.Tensor,
    residual: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    rate: float,
    seed: tf.Tensor | None,
    epsilon: float,
) -> tuple[tf.Tensor, tf.Tensor]:
    total = dropout(inputs, rate, seed, in_xla=True) + residual
    normalized, _ = _normalized(tf.cast(total, gamma.dtype), epsilon)
    return tf.cast(normalized * gamma + beta, inputs.dtype), total


@compiled
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
    return dropout(change, rate, seed, in_xla=True), change, *others


def static_or_dynamic_shape(tensor: tf.Tensor) -> list[int | tf.Tensor]:
    """Return a tensor's dimensions: ints if known, otherwise scalar tensors."""
    dynamic = tf.shape(tensor)
    return [
        dynamic[axis] if size is None else size
        for axis, size in enumerate(tensor.shape.as_list())
    ]

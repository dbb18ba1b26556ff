# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The two heads, against numpy."""

import numpy as np

from electra_tf.modeling.heads import DiscriminatorHead, MaskedLMHead

VECTORS = np.random.RandomState(0).randn(2, 3, 16).astype(np.float32)


def test_the_masked_lm_head_scores_through_the_tied_table(
    small_config, randomize
):
    config = small_config(hidden_act="tanh")
    head = randomize(MaskedLMHead("generator_predictions", config, 16, 6))
    table = np.random.RandomState(1).randn(30, 6).astype(np.float32)
    hidden = VECTORS @ head.dense.kernel.numpy() + head.dense.bias.numpy()
    hidden = np.tanh(hidden)
    hidden -= hidden.mean(-1, keepdims=True)
    hidden /= np.sqrt((hidden**2).mean(-1, keepdims=True))
    norm = head.layer_norm
    hidden = hidden * norm.gamma.numpy() + norm.beta.numpy()
    expected = hidden @ table.T + head.output_bias.numpy()
    np.testing.assert_allclose(head(VECTORS, table), expected, atol=2e-5)


def test_the_discriminator_gives_one_logit_a_token(small_config, randomize):
    config = small_config(hidden_act="relu")
    head = randomize(DiscriminatorHead("discriminator_predictions", config))
    hidden = VECTORS @ head.dense.kernel.numpy() + head.dense.bias.numpy()
    hidden = np.maximum(hidden, 0)
    expected = hidden @ head.dense_1.kernel.numpy() + head.dense_1.bias.numpy()
    actual = head(VECTORS)
    assert actual.shape == [2, 3]
    np.testing.assert_allclose(actual, expected[..., 0], atol=1e-5)

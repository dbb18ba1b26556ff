# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of generator and discriminator, and of simple baselines."""

import math
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from electra_tf.training.curves import Panel

Arrays = Mapping[str, np.ndarray]

# Names of the outputs from which metrics are computed. The objective determines
# which of these outputs a model has.
OUTPUTS = (
    "mlm_preds",
    "mlm_per_token_loss",
    "masked_input_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "sampled_tokids",
    "fake_input_ids",
    "fake_is_fake_tokens",
    "disc_logits",
    "disc_probs",
    "disc_preds",
    "disc_per_example_loss",
    "disc_weights",
    "token_preds",
    "token_per_token_loss",
    "token_inputs",
    "token_targets",
    "token_weights",
)


# Metrics that an evaluation prints: name, baseline, description of the
# baseline.
BASELINES = (
    (
        "masked_lm_accuracy_at_mask",
        "masked_lm_most_frequent_accuracy",
        "always the most frequent token",
    ),
    ("disc_auc_real_tokens", "disc_auc_frequency_rank", "ranked by rarity"),
    ("token_accuracy", "token_copy_accuracy", "always the input token"),
    ("exam_generator_loss", "exam_generator_majority_loss", "majority"),
    ("exam_unigram_loss", "exam_unigram_majority_loss", "majority"),
    ("exam_generator_auc", "", ""),
    ("exam_unigram_auc", "", ""),
)
PANELS = (
    Panel(
        "Generator loss (nats per masked token)", "gen_loss", "masked_lm_loss"
    ),
    Panel(
        "Generator accuracy at [MASK]",
        evaluation="masked_lm_accuracy_at_mask",
        baselines=(
            ("masked_lm_most_frequent_accuracy", "most frequent token"),
        ),
    ),
    Panel("Discriminator loss (nats per token)", "disc_loss", "disc_loss"),
    Panel(
        "Discriminator AUC, real tokens",
        evaluation="disc_auc_real_tokens",
        baselines=(("disc_auc_frequency_rank", "rarity of the token"),),
        chance=0.5,
    ),
    Panel("Second network's loss (nats per token)", "token_loss", "token_loss"),
    Panel(
        "Second network's accuracy",
        evaluation="token_accuracy",
        baselines=(("token_copy_accuracy", "the input token"),),
    ),
    Panel(
        "AUC on the exam (generator's replacements)",
        evaluation="exam_generator_auc",
        chance=0.5,
    ),
    Panel("Replaced tokens (share)", "replaced_share", "replaced_share"),
    Panel("Replacements by token counts (share)", "unigram_share"),
    Panel("Gradient norm before clipping", "grad_norm", log_scale=True),
    Panel("Learning rate", "learning_rate"),
    Panel("Real tokens per second", "tokens_per_second"),
)


def metric_inputs(
    features: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Return the tensors that `PretrainingMetrics.update` reads.

    Args:
      features: inputs of the model.
      outputs: outputs of `PretrainingModel.compute`.
    """
    picked = {name: outputs[name] for name in OUTPUTS if name in outputs}
    return {**picked, "input_mask": features["input_mask"]}


class PretrainingMetrics:
    """Metrics over the batches of one evaluation.

    The original's metrics keep their names and weights (a position drawn twice
    counts twice). `disc_auc` is the original's, which padding raises, because
    padding counts as correctly predicted original tokens.
    `disc_auc_real_tokens` is exact, and computed over real tokens.

    The baselines predict the most frequent token at the evaluated [MASK]s
    (`masked_lm_most_frequent_accuracy`), rank tokens by rarity
    (`disc_auc_frequency_rank`), predict the more frequent class
    (`disc_majority_accuracy`) and copy the input token (`token_copy_accuracy`).

    `disc_*` are computed over the tokens of the discriminator's loss: with
    objective electra_15, the chosen positions. `token_*` belong to a second
    network that predicts tokens. All-Tokens MLM has both kinds, but no
    `disc_loss`.

    Source: google-research/electra, run_pretraining.py, metric_fn.
    """

    def __init__(
        self,
        *,
        mask_token_id: int,
        disc_weight: float,
        token_counts: np.ndarray | None = None,
    ) -> None:
        """Prepare the metrics of one evaluation.

        Args:
          mask_token_id: id of [MASK].
          disc_weight: the hparam; 0: no metrics of the discriminator.
          token_counts: int64 [V]; None: no ranking by rarity.
        """
        self._mask_token_id = mask_token_id
        self._with_disc = disc_weight > 0
        self.examples = 0  # number of rows that were added
        self._token_counts = token_counts
        # Weighted sum of a metric's values, and sum of the weights, by metric.
        self._sums: dict[str, tuple[float, float]] = {}
        self._auc = PaddedAuc()
        self._targets: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []
        self._shown: list[np.ndarray] = []

    def update(self, arrays: Arrays, total_loss: float) -> None:
        """Add a batch to the metrics.

        Args:
          arrays: result of `metric_inputs`, as arrays.
          total_loss: total loss, in nats.
        """
        self.examples += len(arrays["masked_lm_ids"])
        self._add("loss", total_loss)
        weights = arrays["masked_lm_weights"]
        targets = arrays["masked_lm_ids"]
        right = arrays["mlm_preds"] == targets
        self._add("masked_lm_accuracy", right, weights)
        self._add("masked_lm_loss", arrays["mlm_per_token_loss"], weights)
        shown = np.take_along_axis(
            arrays["masked_input_ids"], arrays["masked_lm_positions"], axis=1
        )
        at_mask = (shown == self._mask_token_id) & (weights > 0)
        self._add("masked_lm_accuracy_at_mask", right, at_mask)
        self._targets.append(targets[at_mask])
        if "sampled_tokids" not in arrays:
            return
        sampled_right = arrays["sampled_tokids"] == targets
        self._add("sampled_masked_lm_accuracy", sampled_right, weights)
        if "token_preds" in arrays:
            self._update_token_head(arrays)
        if not self._with_disc:
            return
        replaced = arrays["fake_is_fake_tokens"]
        self._add("replaced_share", replaced, arrays["input_mask"])
        if "disc_logits" in arrays:
            self._update_discriminator(arrays)

    def _update_token_head(self, arrays: Arrays) -> None:
        used, targets = arrays["token_weights"], arrays["token_targets"]
        right = arrays["token_preds"] == targets
        unchanged = arrays["token_inputs"] == targets
        self._add("token_loss", arrays["token_per_token_loss"], used)
        self._add("token_accuracy", right, used)
        self._add("token_copy_accuracy", unchanged, used)

    def _update_discriminator(self, arrays: Arrays) -> None:
        mask = arrays.get("disc_weights", arrays["input_mask"])
        labels, preds = arrays["fake_is_fake_tokens"], arrays["disc_preds"]
        right = labels == preds
        if "disc_per_example_loss" in arrays:
            self._add("disc_loss", arrays["disc_per_example_loss"])
        self._auc.update(labels * mask, arrays["disc_probs"] * mask)
        self._add("disc_accuracy", right, mask)
        self._add("disc_precision", right, preds * mask)
        self._add("disc_recall", right, labels * mask)
        self._add("disc_predicted_replaced_share", preds, mask)
        real = mask.astype(bool)
        # Logits are collected instead of probabilities, because the float32
        # sigmoids of different large logits are equal, and ties change the AUC.
        self._scores.append(arrays["disc_logits"][real])
        self._labels.append(labels[real])
        self._shown.append(arrays["fake_input_ids"][real])

    def result(self) -> dict[str, float]:
        """Return the metrics of all batches by name."""
        result = {
            name: total / weight if weight else 0.0
            for name, (total, weight) in self._sums.items()
        }
        targets = np.concatenate(self._targets or [np.zeros(0, np.int32)])
        if targets.size:
            result["masked_lm_most_frequent_accuracy"] = float(
                np.bincount(targets).max() / targets.size
            )
        if self._labels:
            result["disc_auc"] = self._auc.value
            labels = np.concatenate(self._labels)
            share = labels.sum() / labels.size
            result["disc_majority_accuracy"] = max(share, 1.0 - share)
            result["disc_auc_real_tokens"] = exact_auc(
                labels, np.concatenate(self._scores)
            )
            if self._token_counts is not None:
                rarity = -self._token_counts[np.concatenate(self._shown)]
                result["disc_auc_frequency_rank"] = exact_auc(labels, rarity)
        return {name: float(result[name]) for name in sorted(result)}

    def _add(
        self,
        name: str,
        values: np.ndarray | float,
        weights: np.ndarray | None = None,
    ) -> None:
        values = np.asarray(values, np.float64)
        if weights is None:
            weights = np.ones_like(values)
        weights = np.asarray(weights, np.float64)
        total, weight = self._sums.get(name, (0.0, 0.0))
        total += float((values * weights).sum())
        self._sums[name] = (total, weight + float(weights.sum()))


class PaddedAuc:
    """AUC as in `tf.metrics.auc`, by the trapezoidal rule at 200 thresholds.

    Source: TensorFlow 1.15, metrics_impl.py, auc.
    """

    _THRESHOLDS = 200
    _EPSILON = 1e-6

    def __init__(self) -> None:
        count = self._THRESHOLDS
        inner = [(i + 1) / (count - 1) for i in range(count - 2)]
        self._thresholds = np.array([-1e-7, *inner, 1 + 1e-7], np.float32)
        self._above = np.zeros((2, count), np.int64)  # [label, threshold]
        self._total = np.zeros(2, np.int64)

    def update(self, labels: np.ndarray, probs: np.ndarray) -> None:
        """Add predictions to the AUC.

        Args:
          labels: 0 or 1, any shape.
          probs: probabilities of label 1, same shape.
        """
        labels = labels.reshape(-1).astype(np.int64)
        # As in TensorFlow, a prediction must exceed a threshold to count as
        # positive.
        below = np.searchsorted(
            self._thresholds, probs.reshape(-1).astype(np.float32), side="left"
        )
        size = self._THRESHOLDS + 1
        counts = np.bincount(labels * size + below, minlength=2 * size)
        counts = counts.reshape(2, size)
        self._above += counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
        self._total += counts.sum(axis=1)

    @property
    def value(self) -> float:
        """AUC of all predictions."""
        false_positives, true_positives = self._above.astype(np.float64)
        negatives, positives = self._total.astype(np.float64)
        epsilon = self._EPSILON
        recall = (true_positives + epsilon) / (positives + epsilon)
        fall_out = false_positives / (negatives + epsilon)
        heights = (recall[:-1] + recall[1:]) / 2
        return float(np.sum((fall_out[:-1] - fall_out[1:]) * heights))


def exact_auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the probability that a positive row scores above a negative row.

    A tie counts half.

    Args:
      labels: 0 or 1, [R].
      scores: [R].

    Returns:
      NaN if only one class exists.
    """
    positives = int(labels.sum())
    negatives = labels.size - positives
    if not positives or not negatives:
        return float("nan")
    _, inverse, counts = np.unique(
        scores, return_inverse=True, return_counts=True
    )
    last = counts.cumsum()
    # Mean rank (from 1) of each group of equal scores.
    ranks = last - (counts - 1) / 2
    rank_sum = ranks[inverse.reshape(-1)[labels.astype(bool)]].sum()
    return float(
        (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)
    )


def binary_entropy(share: float) -> float:
    """Return the loss of always predicting a class's share, in nats.

    Args:
      share: share of the class, 0-1.
    """
    if not 0.0 < share < 1.0:
        return 0.0
    return -share * math.log(share) - (1.0 - share) * math.log1p(-share)

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How well generator and discriminator do, beside what guessing would give."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.generator import GeneratorKind, generator_kind
from electra_tf.training.summaries import Panel

Arrays = dict[str, np.ndarray]

# What an evaluation step must hand over; absent ones are left out.
OUTPUTS = tuple(
    """
    mlm_preds mlm_per_token_loss masked_input_ids masked_lm_positions
    masked_lm_ids masked_lm_weights sampled_tokids fake_input_ids
    fake_is_fake_tokens disc_logits disc_probs disc_preds disc_per_example_loss
    disc_weights token_preds token_per_token_loss token_inputs token_targets
    token_weights
    """.split()
)


# Figures that an evaluation shows: name, its baseline, what that one does.
BASELINES = (
    (
        "masked_lm_accuracy_at_mask",
        "masked_lm_most_frequent_accuracy",
        "always the most frequent token",
    ),
    ("disc_auc_real_tokens", "disc_auc_frequency_rank", "ranked by rarity"),
    ("token_accuracy", "token_copy_accuracy", "always the token shown"),
    ("exam_generator_loss", "exam_generator_majority_loss", "majority"),
    ("exam_unigram_loss", "exam_unigram_majority_loss", "majority"),
    ("exam_generator_auc", "", ""),
    ("exam_unigram_auc", "", ""),
)
PANELS = (
    Panel("Generator loss (nats a masked token)", "gen_loss", "masked_lm_loss"),
    Panel(
        "Generator accuracy at [MASK]",
        evaluation="masked_lm_accuracy_at_mask",
        baselines=(
            ("masked_lm_most_frequent_accuracy", "most frequent token"),
        ),
    ),
    Panel("Discriminator loss (nats a token)", "disc_loss", "disc_loss"),
    Panel(
        "Discriminator AUC, real tokens",
        evaluation="disc_auc_real_tokens",
        baselines=(("disc_auc_frequency_rank", "rarity of the token"),),
        chance=0.5,
    ),
    Panel("Second network's loss (nats a token)", "token_loss", "token_loss"),
    Panel(
        "Second network's accuracy",
        evaluation="token_accuracy",
        baselines=(("token_copy_accuracy", "the token shown"),),
    ),
    Panel(
        "AUC on the exam, a generator's replacements",
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
    features: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Picks what `PretrainingMetrics.update` needs from a model's outputs."""
    picked = {name: outputs[name] for name in OUTPUTS if name in outputs}
    return {**picked, "input_mask": features["input_mask"]}


class PretrainingMetrics:
    """Metrics over the batches of one evaluation.

    The original's, under its names, are weighted as there (a position drawn
    twice counts twice). `disc_auc` is the original's, where padding counts as
    right answers on original tokens and lifts it; `disc_auc_real_tokens` is
    exact and over real tokens. Baselines: the commonest token at the evaluated
    [MASK]s (`masked_lm_most_frequent_accuracy`), a token replaced the more, the
    rarer it is (`disc_auc_frequency_rank`), the more frequent class
    (`disc_majority_accuracy`), the token that is shown (`token_copy_accuracy`).

    `disc_*` are over the tokens that the discriminator learns from: with
    objective electra_15, the chosen positions. `token_*` are of a second
    network that predicts tokens. All-Tokens MLM has both, but no `disc_loss`.

    Source: google-research/electra, run_pretraining.py, metric_fn.
    """

    def __init__(
        self,
        *,
        mask_token_id: int,
        disc_weight: float,
        token_counts: np.ndarray | None = None,
    ) -> None:
        """Without `token_counts`, int64 [V], no token is ranked by rarity."""
        self._mask_token_id = mask_token_id
        self._with_disc = disc_weight > 0
        self._token_counts = token_counts
        # Weighted sums and sums of weights.
        self._sums: dict[str, tuple[float, float]] = {}
        self._auc = PaddedAuc()
        self._targets: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []
        self._shown: list[np.ndarray] = []

    def update(self, arrays: Arrays, total_loss: float) -> None:
        self._add("loss", np.float64(total_loss))
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
            used, wanted = arrays["token_weights"], arrays["token_targets"]
            self._add("token_loss", arrays["token_per_token_loss"], used)
            for name, ids in (("", "preds"), ("copy_", "inputs")):
                same = arrays[f"token_{ids}"] == wanted
                self._add(f"token_{name}accuracy", same, used)
        if not self._with_disc:
            return
        replaced = arrays["fake_is_fake_tokens"]
        self._add("replaced_share", replaced, arrays["input_mask"])
        if "disc_logits" in arrays:
            self._update_discriminator(arrays)

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
        # Logits, not probabilities: float32 sigmoids saturate into ties.
        self._scores.append(arrays["disc_logits"][real])
        self._labels.append(labels[real])
        self._shown.append(arrays["fake_input_ids"][real])

    def result(self) -> dict[str, float]:
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
        self, name: str, values: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        values = np.asarray(values, np.float64)
        if weights is None:
            weights = np.ones_like(values)
        weights = np.asarray(weights, np.float64)
        total, weight = self._sums.get(name, (0.0, 0.0))
        total += float((values * weights).sum())
        self._sums[name] = (total, weight + float(weights.sum()))


class PaddedAuc:
    """The AUC of `tf.metrics.auc`: 200 thresholds, trapezoids.

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
        labels = labels.reshape(-1).astype(np.int64)
        # How many thresholds lie strictly below each prediction.
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
        false_positives, true_positives = self._above.astype(np.float64)
        negatives, positives = self._total.astype(np.float64)
        epsilon = self._EPSILON
        recall = (true_positives + epsilon) / (positives + epsilon)
        fall_out = false_positives / (negatives + epsilon)
        heights = (recall[:-1] + recall[1:]) / 2
        return float(np.sum((fall_out[:-1] - fall_out[1:]) * heights))


def exact_auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Probability that a positive scores above a negative; ties count half."""
    positives = int(labels.sum())
    negatives = labels.size - positives
    if not positives or not negatives:
        return float("nan")
    _, inverse, counts = np.unique(
        scores, return_inverse=True, return_counts=True
    )
    last = counts.cumsum()
    ranks = last - (counts - 1) / 2  # Mean rank, from 1, of each tie.
    rank_sum = ranks[inverse.reshape(-1)[labels.astype(bool)]].sum()
    return float(
        (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)
    )


# Whether the discriminator learns anything: by evaluations, and by its loss.
#
# Source: ELECTRA paper, section 3.2, smaller generators; Mercier, Efficient
# transfer learning for NLP with ELECTRA (2021): a large one may make it
# collapse.

# A discriminator that calls fewer than one token in 10,000 the other class.
ONE_CLASS_SHARE = 1e-4


def predicts_one_class(result: dict[str, float]) -> bool:
    """Whether the discriminator called (nearly) every token the same."""
    share = result.get("disc_predicted_replaced_share")
    return share is not None and min(share, 1.0 - share) < ONE_CLASS_SHARE


class CollapseWatch:
    """Counts evaluations in a row in which one class was predicted."""

    def __init__(self, patience: int, earlier: Iterable[dict] = ()) -> None:
        """Starts from the rows of `earlier` evaluations of the same run."""
        self._patience = patience
        self._row = 0
        for result in earlier:
            self.update(result)

    def update(self, result: dict[str, float]) -> int:
        """Takes one evaluation; returns how many in a row showed one class."""
        self._row = self._row + 1 if predicts_one_class(result) else 0
        return self._row

    @property
    def message(self) -> str | None:
        if not self._patience or self._row < self._patience:
            return None
        return (
            f"the discriminator has called every token the same in {self._row}"
            " evaluations in a row (the majority class). Early in training this"
            " is normal; if it stays, lower learning_rate, train longer, or"
            " check that the generator learns (masked_lm_accuracy_at_mask"
            " against masked_lm_most_frequent_accuracy)."
        )


# A loss from this share of guessing's on is no better: an AUC of 0.55 is worth
# some 0.5%. On a healthy plateau, with one of 0.6, it is about two percent.
_NO_BETTER = 0.995


class LossWatch:
    """Compares the discriminator's loss with what guessing gives, in windows.

    Guessing gives every token the share of replaced ones in a log row. A window
    has `collapse_window` steps; the first begins after the warm-up.
    """

    def __init__(
        self, config: Any, earlier: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        """Starts from the log rows of an `earlier` part of the run."""
        self._config = config
        self._step = 0  # of the last row
        self._sums = np.zeros(3)  # of steps, of losses, of guessing's losses
        for row in earlier:
            self.update(row)

    def update(self, row: Mapping[str, Any]) -> str | None:
        """Takes a row of the training log; what to report, where it is time."""
        config = self._config
        warm = (config.two_stage_steps or 0) + config.num_warmup_steps
        steps = row["step"] - max(self._step, warm)
        self._step = row["step"]
        loss, share = row.get("disc_loss"), row.get("replaced_share")
        # Elsewhere the loss is over other tokens, or its logits have an offset.
        watched = config.objective == "electra" and config.collapse_window > 0
        if not watched or steps <= 0 or loss is None or share is None:
            return None
        self._sums += steps * np.array([1.0, loss, binary_entropy(share)])
        steps, loss, guessing = self._sums
        if steps < config.collapse_window:
            return None
        self._sums = np.zeros(3)
        if loss < _NO_BETTER * guessing:
            return None
        kind, width, hint = generator_kind(config), 1.0, ""
        if kind is not GeneratorKind.FULL:
            width = config.generator_hidden_size * (not kind.is_fixed)
        if width >= 0.5 and not config.two_stage_steps:  # they are equal there
            hint = (
                f" The generator has {width:g} of its width, and may be too"
                " good for it: lower generator_hidden_size to 0.25 (with"
                " untied_generator true)."
            )
        return (
            f"over the last {steps:,.0f} steps the discriminator's loss was"
            f" {loss / steps:.4f}, no better than guessing by the share"
            f" of replaced tokens alone ({guessing / steps:.4f}).{hint}"
            " If this comes again, lower learning_rate, raise num_warmup_steps,"
            " or train on shorter texts (collapse_window 0 silences this)."
        )


def binary_entropy(share: float) -> float:
    """Returns the loss of always giving the share of a yes or no, in nats."""
    if not 0.0 < share < 1.0:
        return 0.0
    return -share * math.log(share) - (1.0 - share) * math.log1p(-share)

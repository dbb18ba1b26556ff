# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixtures of several models' predictions: weights and gains."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import optimize

from configure.errors import UserError
from electra_tf.extras.ensemble.predictions import Predictions, Scores
from electra_tf.metrics.direction import lower_is_better
from electra_tf.metrics.trial_statistics import describe

_SMALLEST = 1e-9  # lower bound of likelihoods, whose logarithms must be finite


def mix(stacks: Sequence[np.ndarray], weights: np.ndarray) -> list[np.ndarray]:
    """Return each example's weighted mean over the models, [units, columns].

    Args:
      stacks: [models, units, columns] for each example.
      weights: [models], or [examples, models]; their scale does not matter.
    """
    weights = weights / weights.sum(-1, keepdims=True)
    by_example = np.broadcast_to(weights, [len(stacks), len(stacks[0])])
    return [
        np.tensordot(example_weights, stack, 1)
        for example_weights, stack in zip(by_example, stacks, strict=True)
    ]


def fit_weights(truth: np.ndarray, squared: bool) -> np.ndarray:
    """Return the best weights [models], which are not negative and sum to 1.

    Args:
      truth: the likelihoods of the labels, or the errors, [n, models].
      squared: whether to minimize squared errors; False: maximize the mean
        logarithm of the likelihoods.

    Raises:
      UserError: there is no example (n is 0).
    """
    if not len(truth):
        raise UserError(
            "the models list only wrong answers; expected a right answer to"
            " at least one question, because the weights are fitted to right"
            " answers. Predict with a larger n_best_size."
        )

    def loss(weights: np.ndarray) -> float:
        mixed = truth @ weights
        if squared:
            return np.mean(mixed**2)
        return -np.mean(np.log(np.maximum(mixed, _SMALLEST)))

    count = truth.shape[1]
    solution = optimize.minimize(
        loss,
        np.full(count, 1 / count),
        method="SLSQP",
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
    )
    weights = np.clip(solution.x, 0, 1)
    return weights / weights.sum()


def cross_fit(
    predictions: Predictions, folds: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fit weights to all examples and, for each fold, to the other folds.

    Returns:
      The weights of all examples, [models], and those of each example's fold,
      [examples, models].
    """
    n, squared = len(predictions.stacks), predictions.is_squared
    if n < folds:
        raise UserError(
            f"--folds={folds}: {predictions.name} has {n} examples; expected"
            " at least one example for each fold. Lower --folds."
        )
    truths = [
        predictions.truth(number, stack)
        for number, stack in enumerate(predictions.stacks)
    ]
    fold = np.random.default_rng(seed).permutation(n) % folds
    by_example = np.empty([n, len(predictions.stacks[0])])
    for number in range(folds):
        others = [truths[i] for i in np.flatnonzero(fold != number)]
        by_example[fold == number] = fit_weights(
            np.concatenate(others), squared
        )
    return fit_weights(np.concatenate(truths), squared), by_example


def compare(
    systems: Mapping[str, Scores],
    paths: Sequence[str],
    metric: str,
    resamples: np.ndarray,
) -> dict[str, Any]:
    """Compare each system with the files' mean score and with the best file.

    Standard errors are bootstrapped from paired differences. A score may be
    undefined: equal predictions have no correlation with the labels. The mean
    and the best file leave out files whose score is undefined, and a standard
    error leaves out resamples in which a score that it needs is undefined.

    Args:
      systems: files and mixtures, by name.
      paths: the names of the systems that are files.
      metric: the metric to compare by.
      resamples: the indices of each resample's examples, [resamples, examples].

    Returns:
      Plain values for JSON, and NaN for undefined numbers; gains are [gain,
      standard error]. `undefined_files` lists the files without a defined
      score, and `undefined_resamples` counts the resamples that the standard
      errors leave out, [over the mean, over the best file].

    Raises:
      UserError: no file has a defined score.
    """
    scores = {name: system.metrics[metric] for name, system in systems.items()}
    statistics = describe(
        [scores[path] for path in paths], lower_is_better(metric)
    )
    if statistics.best_index is None:
        raise UserError(
            f"{', '.join(paths)}: {metric} is undefined for every file;"
            " expected a defined score of at least one file. Pass predictions"
            " that differ between examples, for a split whose labels differ."
        )
    best, mean = paths[statistics.best_index], statistics.mean
    defined = [path for path in paths if math.isfinite(scores[path])]
    resampled = {
        name: np.array([system.of_examples(rows) for rows in resamples])
        for name, system in systems.items()
    }
    sign = -1 if lower_is_better(metric) else 1
    resampled_mean = np.mean([resampled[path] for path in defined], axis=0)
    results = {}
    for name in systems:
        over_mean = resampled[name] - resampled_mean
        over_best = resampled[name] - resampled[best]
        results[name] = {
            "figures": systems[name].metrics,
            "over_mean": [
                sign * (scores[name] - mean),
                _standard_error(over_mean),
            ],
            "over_best": [
                sign * (scores[name] - scores[best]),
                _standard_error(over_best),
            ],
            "undefined_resamples": [
                _count_undefined(over_mean),
                _count_undefined(over_best),
            ],
        }
    return {
        "best_file": best,
        "mean_file": mean,
        "undefined_files": [path for path in paths if path not in defined],
        "systems": results,
    }


def _standard_error(differences: np.ndarray) -> float:
    """Return the standard deviation of the resamples' defined differences.

    The result is NaN for fewer than two defined differences.
    """
    defined = differences[np.isfinite(differences)]
    return float(np.std(defined, ddof=1)) if len(defined) > 1 else math.nan


def _count_undefined(differences: np.ndarray) -> int:
    return int(np.count_nonzero(~np.isfinite(differences)))

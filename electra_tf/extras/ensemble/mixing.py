# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixtures of several models' predictions: weights and gains."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import optimize

from configure.errors import UserError
from electra_tf.extras.ensemble.predictions import Predictions, Scores
from electra_tf.metrics.direction import lower_is_better

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
            " answers. Predict with a larger n_best_size"
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
            " at least one example for each fold. Lower --folds"
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

    Standard errors are bootstrapped from paired differences.

    Args:
      systems: files and mixtures, by name.
      paths: the names of the systems that are files.
      metric: the metric to compare by.
      resamples: the indices of each resample's examples, [resamples, examples].

    Returns:
      Plain values for JSON; gains are [gain, standard error].
    """
    scores = {name: system.metrics[metric] for name, system in systems.items()}
    resampled = {
        name: np.array([system.of_examples(rows) for rows in resamples])
        for name, system in systems.items()
    }
    sign = -1 if lower_is_better(metric) else 1
    best = max(paths, key=lambda path: sign * scores[path])
    mean = float(np.mean([scores[path] for path in paths]))
    resampled_mean = np.mean([resampled[path] for path in paths], axis=0)

    def gain(name: str, baseline: float, draws: np.ndarray) -> list[float]:
        """Return a system's gain over a baseline, with its standard error."""
        error = np.std(resampled[name] - draws, ddof=1)
        return [sign * (scores[name] - baseline), float(error)]

    results = {
        name: {
            "figures": systems[name].metrics,
            "over_mean": gain(name, mean, resampled_mean),
            "over_best": gain(name, scores[best], resampled[best]),
        }
        for name in systems
    }
    return {"best_file": best, "mean_file": mean, "systems": results}

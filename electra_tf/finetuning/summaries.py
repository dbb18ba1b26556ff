# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Console output of fine-tuning: model, evaluations, table of trials."""

from collections.abc import Mapping, Sequence

from electra_tf.finetuning.evaluation import Evaluation
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.trial_records import TrialRecord
from electra_tf.metrics import trial_statistics
from electra_tf.training.console import Console


def print_model(console: Console, model: FinetuningModel) -> None:
    """Print the parameter counts of a model and of its heads."""
    total = sum(v.shape.num_elements() for v in model.variables)
    encoder = sum(v.shape.num_elements() for v in model.encoder.variables)
    console.line(
        f"Model: {total:,} parameters in {len(model.variables)} variables,"
        f" {total - encoder:,} of them in the heads of"
        f" {', '.join(model.task_names)}"
    )


def print_evaluations(
    console: Console,
    trial: int,
    evaluations: Sequence[Evaluation],
    other_splits: Mapping[str, Evaluation],
) -> None:
    """Print the metrics of a trial and warn about collapsed predictions.

    Args:
      console: the console.
      trial: the number of the trial, from 1.
      evaluations: the evaluation of each task on its main split.
      other_splits: "task/split" -> the evaluation on a further split.
    """
    for name, evaluation in other_splits.items():
        task, _, split = name.rpartition("/")
        console.line(f"{task}, {split}: {evaluation.scorer.results_str()}")
    for evaluation in evaluations:
        task = evaluation.task
        console.line(f"{task}: {evaluation.scorer.results_str()}")
        for name, value in evaluation.details.items():
            console.line(f"  {name}: {value:.2f}")
        if evaluation.collapse:
            console.warning(
                f"trial {trial} collapsed on {task}: {evaluation.collapse}. The"
                " metrics of this trial do not measure the pre-trained model."
                " Try other seeds or a lower learning_rate."
            )


def print_results(
    console: Console,
    records: Sequence[TrialRecord],
    metrics: Mapping[str, str | None],
) -> None:
    """Print a table of all trials, the collapsed trials, and the best trial.

    Args:
      console: the console.
      records: the trials; if empty, nothing is printed.
      metrics: task -> the metric that the task's description names.
    """
    if not records:
        return
    console.heading(f"Results of {len(records)} trial(s)")
    results = [record.results for record in records]
    for line in trial_statistics.table_lines(
        trial_statistics.summarize(results)
    ):
        console.line(line)
    for record in records:
        for task, collapse in record.collapsed.items():
            console.line(
                f"trial {record.trial} collapsed on {task}: {collapse}"
            )
    best = trial_statistics.best_trial(results, metrics)
    if len(records) > 1 and best is not None:
        record = records[best]
        console.line(f"best trial: {record.trial} ({record.model_dir})")

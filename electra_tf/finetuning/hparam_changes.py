# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hparams that may change between the runs of a fine-tuned model."""

import os
from typing import Any

from electra_tf.checkpoints.hparam_changes import list_changes

# Hparams that may change without invalidating a trained model.
FREE_HPARAMS = frozenset(
    """
    allow_outside_files data_dir distribution_strategy do_eval do_train
    early_stopping_patience eval_batch_size eval_every_n_steps gcp_project
    group_eval_by_length iterations_per_loop keep_all_models keep_checkpoint_max
    log_every_n_steps log_examples max_answer_length model_dir n_best_size
    n_writes_test num_tpu_cores num_trials on_nonfinite overwrite
    predict_batch_size preemption_seconds preprocessed_data_dir qa_na_threshold
    recompute_grad require_gpu results_json results_pkl results_txt run_name
    save_checkpoints_steps strict strict_rows tfds_data_dir threads tpu_job_name
    tpu_name tpu_zone use_tfrecords_if_existing use_tpu vocab_file
    write_distill_outputs write_test_outputs
    """.split()
)
# The hparams of `FREE_HPARAMS` that change the scores of a model.
SCORING = ("max_answer_length", "n_best_size", "qa_na_threshold")


def changed_hparams(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return `name: old -> new` for each change that invalidates the model.

    Paths are compared relative to data_dir, which may be moved.
    """
    roots = [
        os.path.join(hparams.get("data_dir", ""), "")
        for hparams in (before, now)
    ]

    def relative_to_roots(value: Any) -> Any:
        if isinstance(value, str):
            for root in roots:
                value = value.removeprefix(root)
        return value

    names = tuple(name for name in now if name not in FREE_HPARAMS)
    return list_changes(
        {name: relative_to_roots(value) for name, value in before.items()},
        {name: relative_to_roots(value) for name, value in now.items()},
        names,
    )

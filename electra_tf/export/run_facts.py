# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The facts of a model card that only the run knows, at export.

Training, data, metrics, and the commit of the code; without paths of the
machine.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from typing import Any

import tensorflow as tf

import electra_tf
from configure.pretraining import PretrainingConfig
from electra_tf.data.example_writer import MANIFEST_NAME
from electra_tf.export.card_facts import file_facts
from electra_tf.export.signatures import ServingModule
from electra_tf.prediction.loading import FinetunedModel, PretrainedModel

Loaded = FinetunedModel | PretrainedModel

_SETTLED = ("default", "derived")
_OF_THE_RUN = (
    "learning_rate",
    "num_train_steps",
    "train_batch_size",
    "max_seq_length",
    "seed",
)
_SAID_ELSEWHERE = ("model_name", "task_names")


def recorded(loaded: Loaded, module: ServingModule) -> dict[str, Any]:
    """Collects what only the run knows."""
    config = loaded.config
    origins = config.origins
    finetuned = isinstance(loaded, FinetunedModel)
    path = loaded.checkpoint if finetuned else loaded.path
    defaults = PretrainingConfig.default_hparams()
    given = {
        name: value
        for name, value in module.config()["hparams"].items()
        if origins.get(name, "argument") not in _SETTLED
        and name not in _SAID_ELSEWHERE
        and (finetuned or value != defaults.get(name))
    }
    facts = {
        "name": config.model_name if finetuned else _folder_name(path),
        "checkpoint": os.path.basename(path),
        "global_step": loaded.global_step,
        "hparams_set": given,
        "exported": datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%d"
        ),
        "versions": {
            "electra_tf": electra_tf.__version__,
            "tensorflow": tf.__version__,
        },
        "commit": code_commit(),
    }
    if finetuned:
        task = module.config().get("task")
        return facts | {
            "training": {
                name: getattr(config, name)
                for name in (
                    "learning_rate",
                    "num_train_epochs",
                    "train_batch_size",
                    "seed",
                )
            },
            "data": _task_data(loaded, task),
            "metrics": _finetuning_metrics(loaded, task),
        }
    run = _read_json(os.path.join(os.path.dirname(path), "config.json"))
    return facts | {
        "training": {
            "mask_prob": config.mask_prob,
            **{name: run[name] for name in _OF_THE_RUN if name in run},
        },
        "assumptions": list(loaded.assumptions),
        "data": _corpus(run),
        "metrics": _pretraining_metrics(loaded),
    }


def code_commit() -> str | None:
    """Returns the git commit of this code; None outside a repository.

    Ends in "+changes" where files differ from it.
    """
    folder = os.path.dirname(os.path.abspath(electra_tf.__file__))

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        tracked = git("ls-files", "--error-unmatch", "__init__.py")
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.CalledProcessError):
        return None
    return (commit + ("+changes" if changed else "")) if tracked else None


def _folder_name(path: str) -> str:
    folder = path if tf.io.gfile.isdir(path) else os.path.dirname(path)
    return os.path.basename(os.path.abspath(folder))


def _task_data(loaded: FinetunedModel, name: str | None) -> dict[str, Any]:
    """The task's files, as far as they are still there."""
    if name is None:
        return {}
    task = loaded.task(name)
    data: dict[str, Any] = {"source": loaded.config.data_source}
    files = {}
    for split in ("train", *task.get_dev_splits()):
        try:
            paths = task.data_files(split) or []
        except Exception:  # a task of one's own may need its data for this
            paths = []
        for path in paths:
            files[os.path.basename(path)] = {"split": split, **file_facts(path)}
    return data | {"task": name, "files": files}


def _corpus(run: dict[str, Any]) -> dict[str, Any]:
    """What the manifest beside the run's records says."""
    patterns = str(run.get("pretrain_tfrecords", ""))
    path = os.path.join(os.path.dirname(patterns), MANIFEST_NAME)
    manifest = _read_json(path)
    kept = ("settings", "counts")
    return {name: manifest[name] for name in kept if name in manifest}


def _finetuning_metrics(
    loaded: FinetunedModel, name: str | None
) -> dict[str, Any]:
    found = _results(loaded)
    here = os.path.basename(loaded.folder)
    for record in found.get("trials", []):
        if os.path.basename(record.get("model_dir", "")) != here:
            continue
        figures = dict(record.get("results", {}).get(name, {}))
        figures |= record.get("details", {}).get(name, {})
        return {
            "figures": figures,
            "split": "dev",
            "trial": record.get("trial"),
            "global_step": record.get("global_step"),
        }
    return {}


def _results(loaded: FinetunedModel) -> dict[str, Any]:
    """The run's results file; the run's folders may have moved together."""
    stored = _read_json(os.path.join(loaded.folder, "config.json"))
    places = [loaded.config.results_json]
    if stored.get("results_json") and stored.get("model_dir"):
        inner = os.path.relpath(stored["results_json"], stored["model_dir"])
        places.append(os.path.normpath(os.path.join(loaded.folder, inner)))
    return next(filter(None, map(_read_json, places)), {})


def _pretraining_metrics(loaded: PretrainedModel) -> dict[str, Any]:
    folder = os.path.dirname(loaded.path)
    found = _read_json(os.path.join(folder, "results", "unsup_results.json"))
    if not found:
        return {}
    return {
        "figures": found.get("metrics", {}),
        "split": "evaluation records",
        "global_step": found.get("step"),
    }


def _read_json(path: str | None) -> dict[str, Any]:
    """A JSON file's object; empty where there is none that can be read."""
    if not path or not tf.io.gfile.exists(path):
        return {}
    try:
        with tf.io.gfile.GFile(path) as file:
            found = json.load(file)
    except (ValueError, tf.errors.OpError):
        return {}
    return found if isinstance(found, dict) else {}

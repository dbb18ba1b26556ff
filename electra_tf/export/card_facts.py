# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The facts of a model card: measured on the exported files, or recorded.

Anybody can measure the first again; only the run knows the others (training,
data, metrics, the commit of the code; no paths of the machine).
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
from typing import Any

import numpy as np
import tensorflow as tf

import electra_tf
from configure.pretraining import PretrainingConfig
from electra_tf.data.build import MANIFEST_NAME
from electra_tf.export.conversions import measure_conversions
from electra_tf.export.signatures import Loaded, ServingModule
from electra_tf.prediction.loading import FinetunedModel, PretrainedModel
from electra_tf.text.tokenization import vocab_hash

# Inputs of `serve_text` that the card shows the answers to.
PROBES = ("The film was good.", "", "Ein Beispiel: 42 cafés in [MASK]?")
_KEPT_PROBE = 8


def measured(folder: str) -> dict[str, Any]:
    """Measures an exported version."""
    loaded = tf.saved_model.load(folder)
    described = loaded.signatures["describe"]()
    config = json.loads(described["config"].numpy())
    vocab = os.path.join(folder, "assets.extra", "vocab.txt")
    with tf.io.gfile.GFile(vocab) as file:
        tokens = file.read().removesuffix("\n").split("\n")
    conversions = measure_conversions(
        folder, loaded, tokens, config["max_positions"]
    )
    return {
        "kind": described["kind"].numpy().decode(),
        "labels": [label.decode() for label in described["labels"].numpy()],
        "config": {k: v for k, v in config.items() if k != "hparams"},
        "parameters": _parameters(folder),
        "vocabulary": {"tokens": len(tokens), "sha256": vocab_hash(vocab)},
        "signatures": {
            name: {
                "inputs": _specs(function.structured_input_signature[1]),
                "outputs": _specs(function.structured_outputs),
            }
            for name, function in sorted(loaded.signatures.items())
        },
        "files": _files(folder),
        "conversions": conversions,
        "probes": _answers(loaded.signatures["serve_text"]),
    }


def _answers(serve_text: Any) -> dict[str, list[list[Any]]]:
    """The first values of each output for each of the fixed texts."""
    names = serve_text.structured_input_signature[1]
    found = serve_text(**{name: tf.constant(PROBES) for name in names})

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value

    return {
        name: [
            [plain(v) for v in np.ravel(row)[:_KEPT_PROBE].tolist()]
            for row in value.numpy()
        ]
        for name, value in sorted(found.items())
    }


def _parameters(folder: str) -> int:
    """Counts the model's floats (labels and config are strings)."""
    reader = tf.train.load_checkpoint(
        os.path.join(folder, "variables", "variables")
    )
    dtypes = reader.get_variable_to_dtype_map()
    return sum(
        int(np.prod(shape))
        for name, shape in reader.get_variable_to_shape_map().items()
        if dtypes[name].is_floating
    )


def _specs(specs: Any) -> dict[str, str]:
    def shown(spec: Any) -> str:
        sizes = ", ".join("?" if n is None else str(n) for n in spec.shape)
        return f"{spec.dtype.name} [{sizes}]"

    return {name: shown(specs[name]) for name in sorted(specs)}


def _files(folder: str) -> dict[str, dict[str, Any]]:
    """Sizes and hashes of graph, weights and converted files."""
    found = {}
    for place, _, names in tf.io.gfile.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            short = os.path.relpath(path, folder)
            if not short.startswith(("assets.extra", "MODEL_CARD")):
                found[short] = _file_facts(path)
    return dict(sorted(found.items()))


def _file_facts(path: str) -> dict[str, Any]:
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    size = tf.io.gfile.stat(path).length
    return {"bytes": size, "sha256": digest.hexdigest()}


# What only the run knows, at export.

_FINETUNING = ("learning_rate", "num_train_epochs", "train_batch_size", "seed")
_PRETRAINING = (
    "learning_rate",
    "num_train_steps",
    "train_batch_size",
    "max_seq_length",
    "seed",
)


def recorded(loaded: Loaded, module: ServingModule) -> dict[str, Any]:
    """Collects what only the run knows."""
    config = loaded.config
    origins = config.origins
    finetuned = isinstance(loaded, FinetunedModel)
    path = loaded.checkpoint if finetuned else loaded.path
    name, folder = config.model_name, os.path.dirname(path)
    if not finetuned:
        own = path if tf.io.gfile.isdir(path) else folder
        name = os.path.basename(os.path.abspath(own))
    defaults = PretrainingConfig.default_hparams()
    facts = {
        "name": name,
        "checkpoint": os.path.basename(path),
        "global_step": loaded.global_step,
        "hparams_set": {
            name: value
            for name, value in module.config()["hparams"].items()
            if origins.get(name, "argument") not in ("default", "derived")
            and name not in ("model_name", "task_names")
            and (finetuned or value != defaults.get(name))
        },
        "exported": datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%d"
        ),
        "versions": {
            "electra_tf": electra_tf.__version__,
            "tensorflow": tf.__version__,
        },
        "commit": _code_commit(),
    }
    if finetuned:
        task = module.config().get("task")
        return facts | {
            "training": {name: getattr(config, name) for name in _FINETUNING},
            "data": {} if task is None else _task_data(loaded, task),
            "metrics": _finetuning_metrics(loaded, task),
        }
    run = _read_json(os.path.join(folder, "config.json"))
    return facts | {
        "training": {
            "mask_prob": config.mask_prob,
            **{name: run[name] for name in _PRETRAINING if name in run},
        },
        "assumptions": list(loaded.assumptions),
        "data": _corpus(run),
        "metrics": _pretraining_metrics(loaded),
    }


def _code_commit() -> str | None:
    """The git commit of this code, "+changes" added; None outside git."""
    folder = os.path.dirname(os.path.abspath(electra_tf.__file__))

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+changes" if changed else "")


def _task_data(loaded: FinetunedModel, name: str) -> dict[str, Any]:
    """The task's files, as far as they are still there."""
    task = loaded.task(name)
    found = {}
    for split in ("train", *task.get_dev_splits()):
        try:
            paths = task.data_files(split) or []
        except Exception:  # a task of one's own may need its data for this
            paths = []
        for path in paths:
            facts = {"split": split, **_file_facts(path)}
            found[os.path.basename(path)] = facts
    return {"source": loaded.config.data_source, "task": name, "files": found}


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
    """From the run's results file; its folders may have moved together."""
    stored = _read_json(os.path.join(loaded.folder, "config.json"))
    places = [loaded.config.results_json]
    if stored.get("results_json") and stored.get("model_dir"):
        inner = os.path.relpath(stored["results_json"], stored["model_dir"])
        places.append(os.path.normpath(os.path.join(loaded.folder, inner)))
    results = next(filter(None, map(_read_json, places)), {})
    here = os.path.basename(loaded.folder)
    for trial in results.get("trials", []):
        if os.path.basename(trial.get("model_dir", "")) == here:
            figures = dict(trial.get("results", {}).get(name, {}))
            figures |= trial.get("details", {}).get(name, {})
            return {
                "figures": figures,
                "split": "dev",
                "trial": trial.get("trial"),
                "global_step": trial.get("global_step"),
            }
    return {}


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

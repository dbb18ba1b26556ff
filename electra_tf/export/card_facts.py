# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The facts of a model card: what can be measured, and what was recorded.

Measured facts are read from the exported files themselves, so that anybody
can measure them again; recorded ones (data, metrics, commit) come from the
run that is exported.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import subprocess
from typing import Any

import numpy as np
import tensorflow as tf

import electra_tf
from electra_tf.data.manifest import MANIFEST_NAME
from electra_tf.export.conversions import measure_conversions
from electra_tf.export.signatures import ServingModule
from electra_tf.prediction.loading import FinetunedModel, PretrainedModel
from electra_tf.text.vocab import vocab_hash

Loaded = FinetunedModel | PretrainedModel

# Inputs of `serve_text` that the card shows the answers to.
PROBES = ("The film was good.", "", "Ein Beispiel: 42 cafés in Paris?")
_SETTLED = ("default", "derived")
_SAID_ELSEWHERE = ("model_name", "task_names")
_KEPT_PROBE = 8


def measured(folder: str) -> dict[str, Any]:
    """Measures an exported version.

    Args:
      folder: `<output_dir>/<version>`.

    Returns:
      Plain values: parameters, signatures, vocabulary, hashes of the files
      that hold graph and weights, answers to the probes.
    """
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
            name: _signature(function)
            for name, function in sorted(loaded.signatures.items())
        },
        "files": _files(folder),
        "conversions": [dataclasses.asdict(report) for report in conversions],
        "probes": probe(loaded),
    }


def recorded(loaded: Loaded, module: ServingModule) -> dict[str, Any]:
    """Collects what only the run knows.

    Args:
      loaded: the model that was exported.
      module: what it was exported as.

    Returns:
      Plain values, without paths of the machine.
    """
    config = loaded.config
    origins = config.origins
    finetuned = isinstance(loaded, FinetunedModel)
    path = loaded.checkpoint if finetuned else loaded.path
    given = {
        name: value
        for name, value in module.config()["hparams"].items()
        if origins.get(name, "argument") not in _SETTLED
        and name not in _SAID_ELSEWHERE
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
    return facts | {
        "training": {"mask_prob": config.mask_prob},
        "assumptions": list(loaded.assumptions),
        "data": _corpus(loaded),
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


def probe(loaded: Any) -> dict[str, list[list[Any]]]:
    """Asks `serve_text` about fixed texts.

    Args:
      loaded: the SavedModel.

    Returns:
      Numeric and string outputs by name: of each text the first few values.
    """
    function = loaded.signatures["serve_text"]
    names = function.structured_input_signature[1]
    answers = function(**{name: tf.constant(PROBES) for name in names})
    return {
        name: [_first_values(row) for row in value.numpy()]
        for name, value in sorted(answers.items())
    }


def _folder_name(path: str) -> str:
    folder = path if tf.io.gfile.isdir(path) else os.path.dirname(path)
    return os.path.basename(os.path.abspath(folder))


def _first_values(row: Any) -> list[Any]:
    values = np.asarray(row).ravel()[:_KEPT_PROBE].tolist()
    return [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for value in values
    ]


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


def _signature(function: Any) -> dict[str, dict[str, str]]:
    def shown(spec: Any) -> str:
        sizes = ", ".join("?" if n is None else str(n) for n in spec.shape)
        return f"{spec.dtype.name} [{sizes}]"

    inputs = function.structured_input_signature[1]
    outputs = function.structured_outputs
    return {
        "inputs": {n: shown(inputs[n]) for n in sorted(inputs)},
        "outputs": {n: shown(outputs[n]) for n in sorted(outputs)},
    }


def _files(folder: str) -> dict[str, dict[str, Any]]:
    """Sizes and hashes of graph, weights and LiteRT files."""
    found = {}
    for place, _, names in tf.io.gfile.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            short = os.path.relpath(path, folder)
            if not short.startswith(("assets.extra", "MODEL_CARD")):
                found[short] = _file(path)
    return dict(sorted(found.items()))


def _file(path: str) -> dict[str, Any]:
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    size = tf.io.gfile.stat(path).length
    return {"bytes": size, "sha256": digest.hexdigest()}


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
            files[os.path.basename(path)] = {"split": split, **_file(path)}
    return data | {"task": name, "files": files}


def _corpus(loaded: PretrainedModel) -> dict[str, Any]:
    """What the manifest beside the records says."""
    patterns = getattr(loaded.config, "pretrain_tfrecords", "")
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

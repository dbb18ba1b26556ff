# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""MODEL_CARD.md: a description of an exported model.

The text of a card depends only on facts. To check a card, the facts are
measured again on the exported files, and the texts are compared. Facts that
only the files of the run contain are recorded at export, without the paths of
the machine.
"""

from __future__ import annotations

import datetime
import difflib
import json
import math
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

import electra_tf
from configure.errors import UserError, last_line
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import BEST
from electra_tf.data.manifest import MANIFEST_NAME
from electra_tf.export.conversions import measure_conversions
from electra_tf.export.formats import describe_formats
from electra_tf.export.signatures import Loaded, ServingModule
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_digest
from electra_tf.files.json_fields import check_fields, is_object
from electra_tf.files.json_files import read_json, without_nan
from electra_tf.files.reading import read_text
from electra_tf.finetuning.trial_records import read_results
from electra_tf.prediction.loading import FinetunedModel, PretrainedModel
from electra_tf.text.vocabulary import check_vocab, vocab_hash

FILE_NAME = "MODEL_CARD.md"
FACTS_FILE = os.path.join("assets.extra", "card_facts.json")
# File next to released weights, which come without the files of their training
# run. The file contains sections of a card, and checksums of the weights that
# these sections describe.
RELEASED_FACTS = "card.json"
# Largest relative or absolute difference at which a number in the card still
# equals the measured number, because rounding differs between machines.
TOLERANCE = 1e-4
# Texts that are passed to `serve_text`. The card shows the first values of each
# output.
PROBES = ("The film was good.", "Ein Beispiel: 42 cafés in [MASK]?")
_VALUES_SHOWN = 4
# The patterns of the files whose digests are in the card.
_HASHED = (
    "*.pb",
    "variables/*",
    "assets/*",
    "assets.extra/config.json",
    "assets.extra/[lv]*.txt",
    "preprocessor/*.pb",
    "preprocessor/*/*",
    "[lo]*/model*",
)
# Hparams that the card shows even at their defaults.
_SHOWN = (
    "learning_rate",
    "num_train_epochs",
    "num_train_steps",
    "train_batch_size",
    "max_seq_length",
    "mask_prob",
    "seed",
)
_CARD = """\
# {name}: {title}

{about} An ELECTRA model in a TensorFlow SavedModel that takes raw text; what \
is not UTF-8 is left out.

## How to ask it

{signatures}

## Model

{model}

## Training

{training}

## Data

{data}

## Metrics, as the run wrote them

{metrics}

## Limits

- Texts are cut to `max_seq_length` wordpieces (`truncated` says which); \
contexts of questions, sentences to tag and documents are read in windows.
- It knows the languages of its vocabulary and training data only; it repeats \
what is wrong or one-sided in them.
- A development set (`dev`) may have been used to choose among models: its \
metrics are then too good.

## Answers to fixed texts

{probes}

## LiteRT and ONNX files, compared with the SavedModel on random ids

{conversions}

{formats}## Files

{files}

## Where it comes from

{origin}

How to ask it, Model, Answers, LiteRT and ONNX, and Files are measured on the \
files; to measure them again:

    python -m electra_tf export_model --check FOLDER
"""
_FORMATS = """\
## Size and scores of each format

Measured at export: `--check` compares the sizes, not the scores.

{table}

"""
# Sentences about the output of each kind of model, and about its limits.
# `--check` compares cards of earlier exports with these sentences, so the
# sentences must not change.
_KINDS = {
    "classification": "One class per text or pair. Probabilities are the"
    " softmax of the logits, not calibrated; a text that belongs to no class"
    " gets one all the same.",
    "multilabel": "Any number of labels per text or pair, each decided on its"
    " own, at probability 0.5.",
    "regression": "One number per text or pair, not clipped to the range of"
    " the training data.",
    "tagging": "A label for each word of a text: that of its first wordpiece.",
    "question_answering": "The answer to a question, as it stands in a text:"
    " a span of it, right or wrong; scores are not probabilities.",
    "summarization": "The sentences of a text that summarize it, as they stand"
    " there. Sentences end at English punctuation and at line ends.",
    "encoder": "Vectors of a text and of its wordpieces (no head). It was not"
    " taught that similar texts have similar vectors; fine-tune it before"
    " comparing vectors.",
    "replaced_tokens": "For each wordpiece, how probable it is that it"
    " replaces another. It was trained on a generator's replacements; human"
    " mistakes are something else.",
    "fill_mask": "The likeliest wordpieces for each [MASK] of a text, each"
    " filled on its own, the others unknown. The generator is the smaller"
    " network.",
    "electric": "How likely a text is (pseudo-log-likelihood), in one pass."
    " Scores are not normalized; compare texts of one length and kind.",
}


def write_card(
    folder: str,
    loaded: Loaded,
    module: ServingModule,
    score_split: str | None = None,
) -> dict[str, Any]:
    """Write MODEL_CARD.md, and the facts of the card to `assets.extra/`.

    Args:
      folder: an export that is complete except for the card.
      loaded: the exported model.
      module: the module of the export.
      score_split: a labelled split on which all formats are scored.

    Returns:
      The facts, as read back from the file.
    """
    facts = {"measured": measured(folder), "recorded": recorded(loaded, module)}
    if formats := describe_formats(folder, module, score_split):
        facts["recorded"]["formats"] = formats
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    write_atomically(os.path.join(folder, FACTS_FILE), f"{text}\n")
    facts = json.loads(text)
    write_atomically(os.path.join(folder, FILE_NAME), render(facts))
    return facts


def render(facts: Mapping[str, Any]) -> str:
    """Return the text of a card."""
    measured_facts, recorded_facts = facts["measured"], facts["recorded"]
    model = measured_facts["model"]
    kind, task = model["kind"], model.get("task")
    title = kind.replace("_", " ")
    if task:
        title += f" ({task})"
    sections = {
        name: _section(section)
        for name, section in (measured_facts | recorded_facts).items()
        if name not in ("name", "formats")
    }
    # Facts of earlier versions do not include the formats.
    formats = recorded_facts.get("formats")
    table = _FORMATS.format(table=_section(formats)) if formats else ""
    return _CARD.format(
        name=_escaped(recorded_facts["name"]),
        title=_escaped(title),
        about=_KINDS.get(kind, ""),
        formats=table,
        **sections,
    )


def _section(facts: Mapping[str, Any]) -> str:
    """Return facts as a table if all values are dictionaries, or as a list."""
    if not facts:
        return "None recorded."
    rows = [(_code(name), value) for name, value in facts.items()]
    if not all(isinstance(value, dict) for value in facts.values()):
        return "\n".join(f"- {name}: {_shown(value)}" for name, value in rows)
    columns = list(rows[0][1])
    lines = [["", *columns], ["---"] * (len(columns) + 1)]
    lines += [[n, *(_shown(row.get(c)) for c in columns)] for n, row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "<br>".join(f"{_code(n)}: {_shown(v)}" for n, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else _escaped(str(value))


def _escaped(text: str) -> str:
    """Return text as Markdown that shows it unchanged, on one line."""
    return re.sub(r"([\\`*<|])", r"\\\1", " ".join(text.splitlines()))


def _code(text: str) -> str:
    """Return text as Markdown code on one line, safe in a table."""
    text = " ".join(text.splitlines()).replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


# Check of a card.


def check_card(folder: str) -> list[str]:
    """Measure an exported version; return a line for each error in the card.

    Raises:
      UserError: the folder is not an exported version.
    """
    for name in (FACTS_FILE, FILE_NAME, "saved_model.pb"):
        if not tf.io.gfile.exists(os.path.join(folder, name)):
            raise UserError(
                f"--check: {os.path.join(folder, name)} is missing; expected"
                " the folder of an export. Pass <output_dir>/<version>."
            )
    try:
        facts = json.loads(read_text(os.path.join(folder, FACTS_FILE)))
        expected, stated = render(facts), facts["measured"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return [
            f"{FACTS_FILE}: the file does not contain the facts of a model card"
            " of this version of electra_tf"
        ]
    try:
        now = json.loads(json.dumps(measured(folder)))
    except (OSError, tf.errors.OpError, KeyError, ValueError) as error:
        return [f"the model cannot be loaded: {last_line(error)}"]
    written = read_text(os.path.join(folder, FILE_NAME))
    lines = difflib.ndiff(expected.splitlines(), written.splitlines())
    edited = [f"{FILE_NAME}: {x}" for x in lines if x.startswith(("+", "-"))]
    return [*_differences(stated, now), *edited[:8]]


def _differences(stated: Any, now: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each difference between two JSON values."""
    if isinstance(stated, list) and isinstance(now, list):
        stated, now = dict(enumerate(stated)), dict(enumerate(now))
    if isinstance(stated, dict) and isinstance(now, dict):
        for key in stated | now:
            yield from _differences(
                stated.get(key, "absent"),
                now.get(key, "absent"),
                f"{path}.{key}".strip("."),
            )
    elif isinstance(stated, float) and isinstance(now, float):
        if not math.isclose(stated, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{path}: the card states {stated!r}, measured {now!r}"
    elif stated != now:
        yield f"{path}: the card states {stated!r}, measured {now!r}"


# Facts that are measured on the exported files.


def measured(folder: str) -> dict[str, Any]:
    """Return the facts that are measured on an exported version."""
    loaded = tf.saved_model.load(folder)
    config = json.loads(loaded.signatures["describe"]()["config"].numpy())
    del config["hparams"]
    vocab = os.path.join(folder, "assets.extra", "vocab.txt")
    tokens = list(check_vocab(vocab))
    reader = tf.train.load_checkpoint(
        os.path.join(folder, "variables", "variables")
    )
    dtypes = reader.get_variable_to_dtype_map()
    return {
        "signatures": {
            name: {
                "inputs": _specs(function.structured_input_signature[1]),
                "outputs": _specs(function.structured_outputs),
            }
            for name, function in sorted(loaded.signatures.items())
        },
        "model": {
            **config,
            # Variables of strings (labels and config) are not parameters.
            "parameters": sum(
                math.prod(shape)
                for name, shape in reader.get_variable_to_shape_map().items()
                if dtypes[name].is_floating
            ),
            "vocab_size": len(tokens),
            "vocab_sha256": vocab_hash(vocab),
        },
        "probes": {
            text: _answers(loaded.signatures["serve_text"], text)
            for text in PROBES
        },
        "conversions": measure_conversions(
            folder, loaded, tokens, config["max_positions"]
        ),
        "files": {
            os.path.relpath(path, folder): file_digest(path)
            for part in _HASHED
            for path in sorted(tf.io.gfile.glob(os.path.join(folder, part)))
        },
    }


def _answers(serve_text: Any, text: str) -> dict[str, list[Any]]:
    names = serve_text.structured_input_signature[1]
    outputs = serve_text(**dict.fromkeys(names, tf.constant([text])))

    def decode(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value

    answers = {}
    for name in sorted(outputs):
        values = np.ravel(outputs[name])[:_VALUES_SHOWN].tolist()
        answers[name] = list(map(decode, values))
    return answers


def _specs(specs: Mapping[str, tf.TensorSpec]) -> dict[str, str]:
    def shown(spec: tf.TensorSpec) -> str:
        sizes = ", ".join("?" if n is None else str(n) for n in spec.shape)
        return f"{spec.dtype.name} [{sizes}]"

    return {name: shown(specs[name]) for name in sorted(specs)}


# Facts that only the files of the run contain.


def recorded(loaded: Loaded, module: ServingModule) -> dict[str, Any]:
    """Return the facts that only the files of the training run contain."""
    hparams, task = module.config()["hparams"], module.config().get("task")
    if isinstance(loaded, FinetunedModel):
        path = loaded.checkpoint
        facts = {
            "name": loaded.config.model_name,
            "training": {
                "updates": loaded.global_step,
                **_shown_hparams(loaded.config.origins, hparams, {}, hparams),
            },
            "data": _task_data(loaded, task) if task else {},
            "metrics": _finetuning_metrics(loaded, task),
        }
    else:
        path = loaded.path
        facts = _pretraining_facts(loaded, hparams)
    today = datetime.datetime.now(datetime.timezone.utc)
    return {
        **facts,
        "origin": {
            "checkpoint": os.path.basename(path),
            "exported": today.strftime("%Y-%m-%d"),
            "electra_tf": electra_tf.__version__,
            "tensorflow": tf.__version__,
            "commit": _code_commit(),
        },
    }


def _pretraining_facts(
    loaded: PretrainedModel, hparams: Mapping[str, Any]
) -> dict[str, Any]:
    """Return name, training, data and metrics of a pre-trained model."""
    folder = os.path.dirname(loaded.path)
    model_folder = loaded.path if tf.io.gfile.isdir(loaded.path) else folder
    run = _read_json(os.path.join(folder, "config.json"))
    records = os.path.dirname(str(run.get("pretrain_tfrecords", "")))
    manifest = _read_json(
        os.path.join(records, MANIFEST_NAME), "settings", "counts"
    )
    if run.get("pretrain_text"):
        manifest = {}
    results = _read_json(
        os.path.join(folder, "results/unsup_results.json"), "metrics"
    )
    # Results at another step belong to a different checkpoint.
    if results.get("step") != loaded.global_step:
        results = {}
    released = _released_facts(os.path.abspath(model_folder))
    defaults = PretrainingConfig.default_hparams()
    training = {
        "updates": loaded.global_step,
        "assumptions": list(loaded.assumptions),
        **_shown_hparams(loaded.config.origins, hparams, defaults, run),
        **released.get("training", {}),
    }
    # The config of a loaded checkpoint has a placeholder as `model_name`.
    training.pop("model_name", None)
    name = os.path.basename(os.path.abspath(model_folder))
    data = manifest.get("settings", {}) | manifest.get("counts", {})
    return {
        "name": released.get("name", name),
        "training": training,
        "data": data or released.get("data", {}),
        "metrics": results.get("metrics", {}) or released.get("metrics", {}),
    }


def _shown_hparams(
    origins: Mapping[str, str],
    hparams: Mapping[str, Any],
    defaults: Mapping[str, Any],
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the run's hparams that the card shows.

    Args:
      origins: the origins of the hparams, by name.
      hparams: the hparams, without paths.
      defaults: the default values, which are not shown.
      run: the run's hparams, for the hparams that are always shown.
    """
    shown = {name: run[name] for name in _SHOWN if name in run}
    for name, value in hparams.items():
        origin = origins.get(name, "argument")
        is_set = origin not in ("default", "derived")
        if is_set and (name not in defaults or value != defaults[name]):
            shown[name] = value
    return shown


def _released_facts(folder: str) -> dict[str, Any]:
    """Return the facts in `card.json` about the model in a folder, or {}.

    The file may be in the model's folder or in the parent folder. A file that
    describes other folders, or weights that were since replaced, is ignored.
    """
    parent, part = os.path.split(folder)
    for directory, prefix in ((folder, ""), (parent, f"{part}/")):
        path = os.path.join(directory, RELEASED_FACTS)
        facts = _read_json(path)
        digests = facts.get("weights")
        # Programs that do not know this project also write `card.json`.
        if not is_object(digests):
            continue
        _check_objects(facts, path, "training", "data", "metrics")
        is_about_folder = any(name.startswith(prefix) for name in digests)
        if is_about_folder and _have_digests(directory, digests):
            return facts
    return {}


def _have_digests(directory: str, digests: Mapping[str, str]) -> bool:
    """Return whether all files exist and have these SHA-256 digests."""
    for name, digest in digests.items():
        path = os.path.join(directory, name)
        if not tf.io.gfile.exists(path):
            return False
        if file_digest(path)["sha256"] != digest:
            return False
    return True


def _task_data(loaded: FinetunedModel, name: str) -> dict[str, Any]:
    """Return the digests of those of the task's files that still exist."""
    task = loaded.task(name)
    shown, paths = ["train", *task.get_dev_splits()], {}
    for split in (*shown, *task.get_test_splits()):
        try:
            paths[split] = task.data_files(split) or []
        # The code of a user's task can fail here if the data no longer exists.
        except Exception:
            paths[split] = []
    # A split may list a file of another split, because labels are read from
    # that file. The card shows such a file only under the other split.
    split_of = {files[0]: split for split, files in paths.items() if files}
    return {
        f"{split}: {os.path.basename(path)}": file_digest(path)
        for split in shown
        for path in paths[split]
        if split_of.get(path, split) == split
    }


def _finetuning_metrics(
    loaded: FinetunedModel, task: str | None
) -> dict[str, Any]:
    """Return the metrics of the run's trial at the step of the weights."""
    path = loaded.config.results_json
    if not tf.io.gfile.exists(path):
        return {}
    run = os.path.abspath(loaded.folder).removesuffix(os.sep + BEST)
    for record in read_results(path)[1]:
        has_step = record.global_step == loaded.global_step
        directory = os.path.basename(record.model_dir)
        if has_step and directory == os.path.basename(run):
            metrics = dict(record.results.get(task, {}))
            metrics |= record.details.get(task, {})
            return without_nan(
                {f"dev {name}": value for name, value in metrics.items()}
            )
    return {}


def _read_json(path: str, *objects: str) -> dict[str, Any]:
    """Return the object in a JSON file; {} if the file does not exist.

    Args:
      path: the file.
      *objects: the fields whose values must be objects; they may be missing.
    """
    if not tf.io.gfile.exists(path):
        return {}
    content = read_json(path)
    _check_objects(content, path, *objects)
    return content


def _check_objects(content: Mapping[str, Any], path: str, *names: str) -> None:
    """Raise a UserError if a field that a file contains is no object."""
    fields = {name: (is_object, "an object") for name in names}
    remedy = "Restore the file, or remove it to export without its facts."
    check_fields(content, fields, path, remedy, optional=names)


def _code_commit() -> str:
    """Return the commit of this code, or "not known"."""
    folder = os.path.dirname(os.path.abspath(electra_tf.__file__))
    is_tracked = "ls-files --error-unmatch __init__.py"
    describe = "describe --always --exclude=* --abbrev=40 --dirty=+changes"
    try:
        # This command fails for code that is installed inside a different
        # repository.
        _run_git(folder, is_tracked)
        return _run_git(folder, describe)
    except (OSError, subprocess.CalledProcessError):
        return "not known"


def _run_git(folder: str, arguments: str) -> str:
    output = subprocess.check_output(
        ["git", "-C", folder, *arguments.split()],
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return output.strip()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""MODEL_CARD.md: what an exported model is, in words and figures.

The text is a function of the facts alone, so a card can be checked: measure
again, write again, compare. Facts are measured on the exported files, or
recorded at export, where only the run knows them (no paths of the machine).
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
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import BEST
from electra_tf.data.manifest import MANIFEST_NAME
from electra_tf.export.conversions import measure_conversions
from electra_tf.export.signatures import Loaded, ServingModule
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_digest
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_text
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.vocabulary import check_vocab, vocab_hash

FILE_NAME = "MODEL_CARD.md"
FACTS_FILE = os.path.join("assets.extra", "card_facts.json")
# Beside released weights, whose run left nothing else: the sections of a card,
# and the checksums of the weights that they are about.
RELEASED_FACTS = "card.json"
# Numbers of one model differ between machines by rounding.
TOLERANCE = 1e-4
# Every text input of `serve_text` is one of these; the first values of what
# it answers are on the card.
PROBES = ("The film was good.", "Ein Beispiel: 42 cafés in [MASK]?")
_VALUES_SHOWN = 4
_HASHED = (
    *("*.pb", "variables/*", "assets/*", "assets.extra/config.json"),
    *("assets.extra/[lv]*.txt", "preprocessor/*.pb", "preprocessor/*/*"),
    "[lo]*/model*",
)
# Hparams that are shown even at their defaults.
_SHOWN = (
    *("learning_rate", "num_train_epochs", "num_train_steps"),
    *("train_batch_size", "max_seq_length", "mask_prob", "seed"),
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

## Files

{files}

## Where it comes from

{origin}

How to ask it, Model, Answers, LiteRT and ONNX, and Files are measured on the \
files; to measure them again:

    python -m electra_tf export_model --check FOLDER
"""
# What the model does, and a limit of it.
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
    folder: str, loaded: Loaded, module: ServingModule
) -> dict[str, Any]:
    """Writes MODEL_CARD.md and, in `assets.extra/`, the facts behind it."""
    facts = {"measured": measured(folder), "recorded": recorded(loaded, module)}
    # As they will be read back: no tuples, no NumPy.
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    write_atomically(os.path.join(folder, FACTS_FILE), f"{text}\n")
    facts = json.loads(text)
    write_atomically(os.path.join(folder, FILE_NAME), render(facts))
    return facts


def render(facts: Mapping[str, Any]) -> str:
    """Fills the card's template in."""
    known, run = facts["measured"], facts["recorded"]
    kind, task = known["model"]["kind"], known["model"].get("task")
    return _CARD.format(
        name=_escaped(run["name"]),
        title=_escaped(kind.replace("_", " ") + (f" ({task})" if task else "")),
        about=_KINDS.get(kind, ""),
        **{n: _section(part) for n, part in known.items()},
        **{n: _section(part) for n, part in run.items() if n != "name"},
    )


def _section(facts: Mapping[str, Any]) -> str:
    """A table of what has facts of its own, else a list."""
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
    """Text of others, as Markdown shows it: one line, no markup, no cell."""
    return re.sub(r"([\\`*<|])", r"\\\1", " ".join(text.splitlines()))


def _code(text: str) -> str:
    """Text of others as code: one line that neither backtick nor cell ends."""
    text = " ".join(text.splitlines()).replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


# The check.


def check_card(folder: str) -> list[str]:
    """Measures an exported version again; a line for what is not so."""
    for name in (FACTS_FILE, FILE_NAME, "saved_model.pb"):
        if not tf.io.gfile.exists(os.path.join(folder, name)):
            raise UserError(
                f"--check: {os.path.join(folder, name)} is not there; expected"
                " <output_dir>/<version> of an export."
            )
    try:
        facts = json.loads(read_text(os.path.join(folder, FACTS_FILE)))
        expected, stated = render(facts), facts["measured"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return [f"{FACTS_FILE}: not the facts of a card as written now"]
    try:
        now = json.loads(json.dumps(measured(folder)))
    except (OSError, tf.errors.OpError, KeyError, ValueError) as error:
        last = str(error).strip().splitlines()[-1]
        return [f"the model cannot be loaded: {last}"]
    written = read_text(os.path.join(folder, FILE_NAME))
    lines = difflib.ndiff(expected.splitlines(), written.splitlines())
    edited = [f"{FILE_NAME}: {x}" for x in lines if x.startswith(("+", "-"))]
    return [*_differences(stated, now), *edited[:8]]


def _differences(stated: Any, now: Any, place: str = "") -> Iterator[str]:
    if isinstance(stated, list) and isinstance(now, list):
        stated, now = dict(enumerate(stated)), dict(enumerate(now))
    if isinstance(stated, dict) and isinstance(now, dict):
        for key in stated | now:
            one, other = stated.get(key, "absent"), now.get(key, "absent")
            yield from _differences(one, other, f"{place}.{key}".strip("."))
    elif isinstance(stated, float) and isinstance(now, float):
        if not math.isclose(stated, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{place}: stated {stated!r}, is {now!r}"
    elif stated != now:
        yield f"{place}: stated {stated!r}, is {now!r}"


# The facts that are measured.


def measured(folder: str) -> dict[str, Any]:
    """Measures an exported version."""
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
            # Labels and config are variables, too, but strings.
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
    found = serve_text(**dict.fromkeys(names, tf.constant([text])))
    return {
        name: [
            x.decode("utf-8", "replace") if isinstance(x, bytes) else x
            for x in np.ravel(found[name])[:_VALUES_SHOWN].tolist()
        ]
        for name in sorted(found)
    }


def _specs(specs: Mapping[str, tf.TensorSpec]) -> dict[str, str]:
    def shown(spec: tf.TensorSpec) -> str:
        sizes = ", ".join("?" if n is None else str(n) for n in spec.shape)
        return f"{spec.dtype.name} [{sizes}]"

    return {name: shown(specs[name]) for name in sorted(specs)}


# The facts that only the run knows.


def recorded(loaded: Loaded, module: ServingModule) -> dict[str, Any]:
    """Collects what only the run knows."""
    config = loaded.config
    hparams, task = module.config()["hparams"], module.config().get("task")
    training = {"updates": loaded.global_step}
    released: dict[str, Any] = {}
    if isinstance(loaded, FinetunedModel):
        path, name = loaded.checkpoint, config.model_name
        usual, run = {}, hparams
        data = _task_data(loaded, task) if task else {}
        metrics = _finetuning_metrics(loaded, task)
    else:
        path, usual = loaded.path, PretrainingConfig.default_hparams()
        folder = os.path.dirname(path)
        own = path if tf.io.gfile.isdir(path) else folder
        name = os.path.basename(os.path.abspath(own))
        run = _read_json(os.path.join(folder, "config.json"))
        records = os.path.dirname(str(run.get("pretrain_tfrecords", "")))
        manifest = _read_json(os.path.join(records, MANIFEST_NAME))
        if run.get("pretrain_text"):
            manifest = {}
        data = manifest.get("settings", {}) | manifest.get("counts", {})
        found = _read_json(os.path.join(folder, "results/unsup_results.json"))
        same = found.get("step") == loaded.global_step  # or of another one
        metrics = found.get("metrics", {}) if same else {}
        training["assumptions"] = list(loaded.assumptions)
        released = _released_facts(os.path.abspath(own))
        name = released.get("name", name)
        data = data or released.get("data", {})
        metrics = metrics or released.get("metrics", {})
    training |= {hparam: run[hparam] for hparam in _SHOWN if hparam in run}
    for hparam, value in hparams.items():
        origin = config.origins.get(hparam, "argument")
        is_set = origin not in ("default", "derived")
        if is_set and (hparam not in usual or value != usual[hparam]):
            training[hparam] = value
    training |= released.get("training", {})
    if not isinstance(loaded, FinetunedModel):
        # A checkpoint that is read for its weights has a placeholder's name.
        training.pop("model_name", None)
    today = datetime.datetime.now(datetime.timezone.utc)
    return {
        "name": name,
        "training": training,
        "data": data,
        "metrics": metrics,
        "origin": {
            "checkpoint": os.path.basename(path),
            "exported": today.strftime("%Y-%m-%d"),
            "electra_tf": electra_tf.__version__,
            "tensorflow": tf.__version__,
            "commit": _code_commit(),
        },
    }


def _released_facts(folder: str) -> dict[str, Any]:
    """Return what `card.json` states of a model or its part; {} without it.

    Facts about weights that were replaced since are left out, as are those in
    the folder above unless they are about the weights in this one.
    """
    parent, part = os.path.split(folder)
    for place, lead in ((folder, ""), (parent, f"{part}/")):
        facts = _read_json(os.path.join(place, RELEASED_FACTS))
        digests = facts.get("weights", {})
        if any(name.startswith(lead) for name in digests) and all(
            tf.io.gfile.exists(path := os.path.join(place, name))
            and file_digest(path)["sha256"] == digest
            for name, digest in digests.items()
        ):
            return facts
    return {}


def _task_data(loaded: FinetunedModel, name: str) -> dict[str, Any]:
    """The task's files, as far as they are still there."""
    task = loaded.task(name)
    shown, paths = ["train", *task.get_dev_splits()], {}
    for split in (*shown, *task.get_test_splits()):
        try:
            paths[split] = task.data_files(split) or []
        except Exception:  # a task of one's own may need its data for this
            paths[split] = []
    # A split's features may depend on another's file, for its labels.
    own = {found[0]: split for split, found in paths.items() if found}
    return {
        f"{split}: {os.path.basename(path)}": file_digest(path)
        for split in shown
        for path in paths[split]
        if own.get(path, split) == split
    }


def _finetuning_metrics(
    loaded: FinetunedModel, task: str | None
) -> dict[str, Any]:
    run = os.path.abspath(loaded.folder).removesuffix(os.sep + BEST)
    here = os.path.basename(run)
    for trial in _read_json(loaded.config.results_json).get("trials", []):
        of_these = trial.get("global_step") == loaded.global_step
        if os.path.basename(trial.get("model_dir", "")) == here and of_these:
            figures = trial.get("results", {}).get(task, {})
            figures |= trial.get("details", {}).get(task, {})
            return {f"dev {name}": value for name, value in figures.items()}
    return {}


def _read_json(path: str) -> dict[str, Any]:
    """A JSON file's object; empty where there is none that can be read."""
    try:
        return read_json(path)
    except UserError:
        return {}


def _code_commit() -> str:
    folder = os.path.dirname(os.path.abspath(electra_tf.__file__))
    describe = "describe --always --exclude=* --abbrev=40 --dirty=+changes"
    # The code may be installed inside of another repository.
    for words in ("ls-files --error-unmatch __init__.py", describe):
        try:
            said = subprocess.check_output(
                ["git", "-C", folder, *words.split()],
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except (OSError, subprocess.CalledProcessError):
            return "not known"
    return said.strip()

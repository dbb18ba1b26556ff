# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""MODEL_CARD.md: what an exported model is, in words and figures.

The text is a function of the facts alone, so a card can be checked: measure
again, write again, compare.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.export.card_facts import PROBES, measured, recorded
from electra_tf.export.conversions import describe_conversion
from electra_tf.export.signatures import Loaded, ServingModule
from electra_tf.files import write_atomically

FILE_NAME = "MODEL_CARD.md"
FACTS_FILE = os.path.join("assets.extra", "card_facts.json")
# Numbers of one model differ between machines by rounding.
TOLERANCE = 1e-4

_CARD = """\
# {name}: {title}

{about} An ELECTRA model in a TensorFlow SavedModel that takes raw text.
{labels}
## How to ask it

{signatures}

## Model

- {parameters:,} parameters: {num_hidden_layers} layers of {hidden_size}, \
{num_attention_heads} heads
- Vocabulary of {tokens:,} wordpieces, SHA-256 `{sha256}`
- Text: {case}; bytes that are not UTF-8 are left out
- Texts are cut to {max_seq_length} wordpieces, [CLS] and [SEP] included; ids \
may be up to {max_positions} long

## Training

{training}

## Data

{data}

## Metrics

{metrics}

## Limits

{limits}

## Answers to fixed texts

Every text input of `serve_text` is the same text.

{probes}
{conversions}
## Files

{files}

## Where it comes from

- checkpoint `{checkpoint}`
- exported {exported} by electra_tf {electra_tf}, TensorFlow {tensorflow}
- code: {commit}

What stands under How to ask it, Model, Answers, Other formats and Files is \
measured on the files; to measure it again:

    python -m electra_tf export_model --check FOLDER
"""
# What it does, and a limit of it.
_KINDS = {
    "classification": (
        "One class per text{pairs}.",
        "Probabilities are the softmax of the logits, not calibrated; a text"
        " that belongs to no class gets one all the same.",
    ),
    "multilabel": (
        "Any number of labels per text{pairs}.",
        "Each label is decided on its own, at probability 0.5.",
    ),
    "regression": (
        "One number per text{pairs}.",
        "Values are not clipped to the range of the training data.",
    ),
    "tagging": (
        "A label for each word of a text.",
        "A word gets the label of its first wordpiece.",
    ),
    "question_answering": (
        "The answer to a question, as it stands in a text.",
        "Answers are spans of the given text, right or wrong; scores are not"
        " probabilities.",
    ),
    "encoder": (
        "Vectors of a text and of its wordpieces (no head).",
        "The encoder was not taught that similar texts have similar vectors;"
        " fine-tune it before comparing vectors.",
    ),
    "replaced_tokens": (
        "For each wordpiece, how probable it is that it replaces another.",
        "It was trained on a generator's replacements; human mistakes are"
        " something else.",
    ),
    "fill_mask": (
        "The likeliest wordpieces for each [MASK] of a text.",
        "Each mask is filled on its own, the others unknown. The generator is"
        " the smaller network.",
    ),
    "electric": (
        "How likely a text is (pseudo-log-likelihood), in one pass.",
        "The scores are not normalized; compare texts of one length and kind.",
    ),
}


def write_card(
    folder: str, loaded: Loaded, module: ServingModule
) -> dict[str, Any]:
    """Writes MODEL_CARD.md and, in `assets.extra/`, the facts behind it."""
    facts = {
        "measured": measured(folder),
        "recorded": recorded(loaded, module),
    }
    # As they will be read back: no tuples, no NumPy.
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    write_atomically(os.path.join(folder, FACTS_FILE), f"{text}\n")
    facts = json.loads(text)
    write_atomically(os.path.join(folder, FILE_NAME), render(facts))
    return facts


def render(facts: Mapping[str, Any]) -> str:
    """Fills the card's template in."""
    known, run = facts["measured"], facts["recorded"]
    config, labels = known["config"], known["labels"]
    task = config.get("task")
    title = known["kind"].replace("_", " ") + (f" ({task})" if task else "")
    pairs = " or pair of texts" if config.get("pairs") else ""
    case = "case kept"
    if config["do_lower_case"]:
        kept = "stripped" if config["strip_accents"] else "kept"
        case = f"lower-cased, accents {kept}"
    shown = ", ".join(map(_code, labels[:50]))
    if len(labels) > 50:
        shown += f" ... ({len(labels)} in all)"
    return _CARD.format(
        **{key: _escaped(value) for key, value in run["versions"].items()},
        **config["encoder"],
        **known["vocabulary"],
        name=_escaped(run["name"]),
        title=_escaped(title),
        about=_KINDS.get(known["kind"], ("", ""))[0].format(pairs=pairs),
        labels=f"\nLabels, in order: {shown}.\n" if labels else "",
        signatures=_signatures(known["signatures"]),
        parameters=known["parameters"],
        case=case,
        max_seq_length=config["max_seq_length"],
        max_positions=config["max_positions"],
        training=_bullets(_training(run)),
        data=_data(run["data"]),
        metrics=_metrics(run["metrics"]),
        limits=_bullets(_limits(known, run["metrics"])),
        probes=_probes(known["probes"]),
        conversions=_conversions(known["conversions"]),
        files=_files(known["files"]),
        checkpoint=_escaped(run["checkpoint"]),
        exported=run["exported"],
        commit=f"commit `{run['commit']}`"
        if run["commit"]
        else "commit not known",
    )


def _signatures(signatures: Mapping[str, Any]) -> str:
    def joined(specs: Mapping[str, str]) -> str:
        return "<br>".join(f"`{n}`: {s}" for n, s in specs.items()) or "none"

    return _table(
        {"signature": f"`{name}`"} | {k: joined(v) for k, v in specs.items()}
        for name, specs in signatures.items()
    )


def _training(run: Mapping[str, Any]) -> Iterator[str]:
    for name, value in run["training"].items():
        yield f"{name}: {_escaped(str(value))}"
    step = run["global_step"]
    yield f"updates: {'not recorded' if step is None else step}"
    for name, value in run["hparams_set"].items():
        if name not in run["training"]:
            yield f"not the default: `{name}` = {_code(json.dumps(value))}"
    for text in run.get("assumptions", []):
        yield f"assumed: {_escaped(text)}"


def _data(data: Mapping[str, Any]) -> str:
    if data.get("files"):
        return _files(data["files"])
    if "counts" in data:
        parts = ("settings", "counts")
        return _bullets(f"{k}: {_escaped(json.dumps(data[k]))}" for k in parts)
    where = f" (task {_escaped(data['task'])})" if data.get("task") else ""
    return f"Not recorded: the data were not there at export{where}."


def _metrics(metrics: Mapping[str, Any]) -> str:
    if not metrics.get("figures"):
        return "None recorded: no results file of this model was found."
    table = _table(
        {
            "metric": _escaped(name),
            "value": "not a number" if value is None else f"{value:.4g}",
        }
        for name, value in metrics["figures"].items()
    )
    return (
        f"On {metrics['split']}, at step {metrics.get('global_step')}, as the"
        f" run wrote them:\n\n{table}"
    )


def _limits(
    known: Mapping[str, Any], metrics: Mapping[str, Any]
) -> Iterator[str]:
    if known["kind"] in _KINDS:
        yield _KINDS[known["kind"]][1]
    if known["kind"] != "question_answering":
        yield (
            f"What is beyond {known['config']['max_seq_length']} wordpieces is"
            " not read; `truncated` of `serve_text` says when."
        )
    yield (
        "It knows the languages of its vocabulary and training data only; it"
        " repeats what is wrong or one-sided in them."
    )
    if not metrics.get("figures"):
        yield "How good it is is not known: no metrics were found."
    elif metrics.get("split") == "dev":
        yield (
            "The metrics are of the development set, which may have been used"
            " to choose among models."
        )


def _probes(probes: Mapping[str, Any]) -> str:
    # Strings and short rows; long rows of numbers tell a reader nothing.
    shown = [
        name
        for name, rows in probes.items()
        if all(len(row) <= 4 or isinstance(row[0], str) for row in rows)
    ] or list(probes)[:2]

    def cell(values: Sequence[Any]) -> str:
        texts = [f"{v:.4f}" if isinstance(v, float) else str(v) for v in values]
        return _escaped(", ".join(texts))

    return _table(
        {"text": _code(text) if text else "(empty)"}
        | {name: cell(probes[name][i]) for name in shown}
        for i, text in enumerate(PROBES)
    )


def _conversions(reports: Sequence[Mapping[str, Any]]) -> str:
    if not reports:
        return ""
    lines = _bullets(map(describe_conversion, reports))
    return (
        "\n## Other formats\n\nIds in, numbers out; compared with the"
        f" SavedModel on random ids.\n\n{lines}\n"
    )


def _files(files: Mapping[str, Mapping[str, Any]]) -> str:
    return _table(
        {
            "file": _code(name),
            **facts,
            "bytes": f"{facts['bytes']:,}",
            "sha256": f"`{facts['sha256']}`",
        }
        for name, facts in files.items()
    )


def _table(rows: Iterable[Mapping[str, str]]) -> str:
    """A table of rows with the same keys, whose values are escaped."""
    rows = list(rows)
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(r.values() for r in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _escaped(text: str) -> str:
    """Text of others, as Markdown shows it: one line, no markup, no cell."""
    return re.sub(r"([\\`*<|])", r"\\\1", " ".join(text.splitlines()))


def _code(text: str) -> str:
    """Text of others as code: one line that neither backtick nor cell ends."""
    text = " ".join(text.splitlines()).replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


# The check.


def check_card(folder: str) -> list[str]:
    """Measures an exported version again and compares with its card.

    Returns:
      A line for each statement that is not so; empty where all are.
    """
    path = os.path.join(folder, FACTS_FILE)
    card = os.path.join(folder, FILE_NAME)
    for needed in (path, card, os.path.join(folder, "saved_model.pb")):
        if not tf.io.gfile.exists(needed):
            raise UserError(
                f"--check: {needed} is not there; expected"
                " <output_dir>/<version> of an export."
            )
    with tf.io.gfile.GFile(path) as file:
        facts = json.load(file)
    with tf.io.gfile.GFile(card) as file:
        written = file.read()
    try:
        now = json.loads(json.dumps(measured(folder)))
    except (OSError, tf.errors.OpError, KeyError, ValueError) as error:
        last = str(error).strip().splitlines()[-1]
        return [f"the model cannot be loaded: {last}"]
    problems = list(_differences(facts["measured"], now))
    expected = render(facts)
    if written != expected:
        problems += [
            f"{FILE_NAME}: {text}" for text in _other_lines(written, expected)
        ]
    return problems


def _differences(
    stated: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[str]:
    before, after = dict(_flat(stated)), dict(_flat(now))
    for place in sorted(before.keys() | after.keys()):
        if place not in after:
            yield f"{place}: is stated, but is not there"
        elif place not in before:
            yield f"{place}: is there, but is not stated"
        elif not _same(before[place], after[place]):
            yield f"{place}: stated {before[place]!r}, is {after[place]!r}"


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict | list):
        yield place, value
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in items:
        yield from _flat(part, f"{place}.{key}" if place else str(key))


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, float) and isinstance(now, float):
        return math.isclose(before, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return before == now


def _other_lines(written: str, expected: str) -> list[str]:
    """Lines of the card that the facts do not give, and the other way."""
    one, other = written.splitlines(), expected.splitlines()
    extra = [f"says {line!r}" for line in one if line not in other]
    absent = [f"lacks {line!r}" for line in other if line not in one]
    return (extra + absent)[:8] or ["lines are in another order"]

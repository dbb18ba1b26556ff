# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""MODEL_CARD.md: what an exported model is, in words and figures.

The text is a function of the facts alone, so a card can be checked: measure
again, write again, compare (`card_check`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from electra_tf.export.card_facts import PROBES

FILE_NAME = "MODEL_CARD.md"
FACTS_FILE = "card_facts.json"
_ABOUT = {
    "classification": "One class per text{pairs}.",
    "multilabel": "Any number of labels per text{pairs}.",
    "regression": "One number per text{pairs}.",
    "tagging": "A label for each word of a text.",
    "question_answering": "The answer to a question, as it stands in a text.",
    "encoder": "Vectors of a text and of its wordpieces (no head).",
    "replaced_tokens": "For each wordpiece, how probable it is that it"
    " replaces another.",
    "fill_mask": "The likeliest wordpieces for each [MASK] of a text.",
    "electric": "How likely a text is (pseudo-log-likelihood), in one pass.",
}
_LIMITS = {
    "classification": "Probabilities are the softmax of the logits, not"
    " calibrated; a text that belongs to no class gets one all the same.",
    "multilabel": "Each label is decided on its own, at probability 0.5.",
    "regression": "Values are not clipped to the range of the training data.",
    "tagging": "A word gets the label of its first wordpiece.",
    "question_answering": "Answers are spans of the given text, right or"
    " wrong; scores are not probabilities.",
    "encoder": "The encoder was not taught that similar texts have similar"
    " vectors; fine-tune it before comparing vectors.",
    "replaced_tokens": "It was trained on a generator's replacements; human"
    " mistakes are something else.",
    "fill_mask": "Each mask is filled on its own, the others unknown. The"
    " generator is the smaller network.",
    "electric": "The scores are not normalized; compare texts of one length"
    " and kind.",
}


def render(facts: Mapping[str, Any]) -> str:
    """Writes the card."""
    measured, recorded = facts["measured"], facts["recorded"]
    parts = [
        f"# {recorded['name']}: {_title(measured)}",
        _about(measured),
        "## How to ask it",
        _signatures(measured["signatures"]),
        "## Model",
        _bullets(_model_lines(measured)),
        "## Training",
        _bullets(_training_lines(recorded)),
        "## Data",
        _data(recorded["data"]),
        "## Metrics",
        _metrics(recorded["metrics"]),
        "## Limits",
        _bullets(_limits(measured, recorded)),
        "## Answers to fixed texts",
        _probes(measured),
    ]
    if measured["conversions"]:
        parts += ["## Other formats", _conversions(measured["conversions"])]
    parts += [
        "## Files",
        _table(
            ("file", "bytes", "SHA-256"),
            (
                (f"`{name}`", f"{f['bytes']:,}", f"`{f['sha256']}`")
                for name, f in measured["files"].items()
            ),
        ),
        "## Where it comes from",
        _bullets(_origin_lines(recorded)),
        "What stands under How to ask it, Model, Answers, Other formats and"
        " Files is measured on the files; to measure it again:\n\n"
        "    python -m electra_tf export_model --check FOLDER",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(measured: Mapping[str, Any]) -> str:
    task = measured["config"].get("task")
    kind = measured["kind"].replace("_", " ")
    return f"{kind} ({task})" if task else kind


def _about(measured: Mapping[str, Any]) -> str:
    pairs = " or pair of texts" if measured["config"].get("pairs") else ""
    text = _ABOUT.get(measured["kind"], "").format(pairs=pairs)
    text += " An ELECTRA model in a TensorFlow SavedModel that takes raw text."
    if labels := measured["labels"]:
        text += f"\n\nLabels, in order: {_quoted(labels)}."
    return text.strip()


def _signatures(signatures: Mapping[str, Any]) -> str:
    def joined(specs: Mapping[str, str]) -> str:
        return "<br>".join(f"`{n}`: {s}" for n, s in specs.items()) or "none"

    return _table(
        ("signature", "inputs", "outputs"),
        (
            (f"`{name}`", joined(s["inputs"]), joined(s["outputs"]))
            for name, s in signatures.items()
        ),
    )


def _model_lines(measured: Mapping[str, Any]) -> list[str]:
    config, vocabulary = measured["config"], measured["vocabulary"]
    sizes = config["encoder"]
    case = "lower-cased" if config["do_lower_case"] else "case kept"
    accents = ""
    if config["do_lower_case"]:
        kept = "stripped" if config["strip_accents"] else "kept"
        accents = f", accents {kept}"
    return [
        f"{measured['parameters']:,} parameters: {sizes['num_hidden_layers']}"
        f" layers of {sizes['hidden_size']},"
        f" {sizes['num_attention_heads']} heads",
        f"Vocabulary of {vocabulary['tokens']:,} wordpieces, SHA-256"
        f" `{vocabulary['sha256']}`",
        f"Text: {case}{accents}; bytes that are not UTF-8 are left out",
        f"Texts are cut to {config['max_seq_length']} wordpieces, [CLS] and"
        f" [SEP] included; ids may be up to {config['max_positions']} long",
    ]


def _training_lines(recorded: Mapping[str, Any]) -> list[str]:
    lines = [f"{k}: {v}" for k, v in recorded["training"].items()]
    step = recorded["global_step"]
    lines.append(f"updates: {'not recorded' if step is None else step}")
    given = recorded["hparams_set"]
    lines += [
        f"not the default: `{name}` = `{json.dumps(value)}`"
        for name, value in given.items()
        if name not in recorded["training"]
    ]
    lines += [f"assumed: {text}" for text in recorded.get("assumptions", [])]
    return lines


def _data(data: Mapping[str, Any]) -> str:
    if files := data.get("files"):
        return _table(
            ("file", "split", "bytes", "SHA-256"),
            (
                (f"`{n}`", f["split"], f"{f['bytes']:,}", f"`{f['sha256']}`")
                for n, f in files.items()
            ),
        )
    if "counts" in data:
        return _bullets(
            [f"{k}: {json.dumps(data[k])}" for k in ("settings", "counts")]
        )
    where = f" (task {data['task']})" if data.get("task") else ""
    return f"Not recorded: the data were not there at export{where}."


def _metrics(metrics: Mapping[str, Any]) -> str:
    if not metrics.get("figures"):
        return "None recorded: no results file of this model was found."
    step = metrics.get("global_step")
    rows = (
        (name, "not a number" if value is None else f"{value:.4g}")
        for name, value in metrics["figures"].items()
    )
    return (
        f"On {metrics['split']}, at step {step}, as the run wrote them:\n\n"
        + _table(("metric", "value"), rows)
    )


def _limits(
    measured: Mapping[str, Any], recorded: Mapping[str, Any]
) -> list[str]:
    limits = []
    if text := _LIMITS.get(measured["kind"]):
        limits.append(text)
    length = measured["config"]["max_seq_length"]
    if measured["kind"] != "question_answering":
        limits.append(
            f"What is beyond {length} wordpieces is not read; `truncated` of"
            " `serve_text` says when."
        )
    limits.append(
        "It knows the languages of its vocabulary and training data only; it"
        " repeats what is wrong or one-sided in them."
    )
    if not recorded["metrics"].get("figures"):
        limits.append("How good it is is not known: no metrics were found.")
    elif recorded["metrics"].get("split") == "dev":
        limits.append(
            "The metrics are of the development set, which may have been used"
            " to choose among models."
        )
    return limits


def _probes(measured: Mapping[str, Any]) -> str:
    probes = measured["probes"]
    # Strings and short rows; long rows of numbers tell a reader nothing.
    shown = [
        name
        for name, rows in probes.items()
        if all(len(row) <= 4 or isinstance(row[0], str) for row in rows)
    ] or list(probes)[:2]
    rows = (
        (
            f"`{text}`" if text else "(empty)",
            *(_cell(probes[n][i]) for n in shown),
        )
        for i, text in enumerate(PROBES)
    )
    return "Every text input of `serve_text` is the same text.\n\n" + _table(
        ("text", *shown), rows
    )


def _conversions(reports: Sequence[Mapping[str, Any]]) -> str:
    return (
        "Ids in, numbers out; compared with the SavedModel on random ids.\n\n"
        + _table(
            ("file", "bytes", "largest change", "mean change", "same choices"),
            (
                (
                    f"`{r['file']}`",
                    f"{r['size']:,}",
                    f"{r['largest_change']:.2g}",
                    f"{r['mean_change']:.2g}",
                    "-"
                    if r["same_choices"] is None
                    else f"{r['same_choices']:.1%}",
                )
                for r in reports
            ),
        )
    )


def _origin_lines(recorded: Mapping[str, Any]) -> list[str]:
    versions = recorded["versions"]
    commit = recorded["commit"]
    return [
        f"checkpoint `{recorded['checkpoint']}`",
        f"exported {recorded['exported']} by electra_tf"
        f" {versions['electra_tf']}, TensorFlow {versions['tensorflow']}",
        f"code: commit `{commit}`" if commit else "code: commit not known",
    ]


def _quoted(labels: Sequence[str]) -> str:
    more = f" ... ({len(labels)} in all)" if len(labels) > 50 else ""
    return ", ".join(f"`{label}`" for label in labels[:50]) + more


def _cell(values: Sequence[Any]) -> str:
    shown = [f"{v:.4f}" if isinstance(v, float) else str(v) for v in values]
    return ", ".join(shown)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        safe = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
        return f"| {' | '.join(safe)} |"

    rule = "|" + "---|" * len(head)
    return "\n".join([line(head), rule, *map(line, rows)])

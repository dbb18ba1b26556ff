# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answer questions from a folder of texts, with the answers' sources.

The texts are text files, JSON lines (.jsonl: a passage in the field text) and
SQuAD's format (.json). The texts are indexed once, and again when a text
changes. A model for question answering reads the passages that share the most
words with a question. The best answer is written as JSON, with its file, line,
passage and scores.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from configure import flags
from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.commands import shared_flags
from electra_tf.commands.serve import require_server, serve_model
from electra_tf.data import tables, values
from electra_tf.extras.ask.text_folder import find_texts
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_sha256
from electra_tf.files.json_files import read_json
from electra_tf.prediction import writer

if TYPE_CHECKING:
    from electra_tf.extras.ask.asker import Asker
    from electra_tf.extras.ask.index import PassageIndex

DEFAULT_WEIGHT = 0.5


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("ask", __doc__)
    _add_question_flags(parser)
    _add_answer_flags(parser)
    args = parser.parse_args(list(argv[1:]))
    sources = (args.question, args.questions, args.fit, args.page or None)
    count = sum(source is not None for source in sources)
    if count != 1:
        parser.error(
            f"found {count} of QUESTION, --questions, --fit and --page;"
            " expected exactly one. Pass only QUESTION or one of the flags"
        )
    for name in ("fit_questions", "passages", "batch_size"):
        if getattr(args, name) < 1:
            parser.error(
                f"--{name} is {getattr(args, name)}; expected 1 or more. Pass a"
                " larger number"
            )
    if args.weight is not None and not 0 <= args.weight <= 1:
        parser.error(
            f"--weight is {args.weight}; expected a number from 0 to 1. Pass"
            " such a number"
        )
    if args.fit and args.weight is not None:
        parser.error(
            f"--weight is {args.weight}, but --fit chooses the weight. Remove"
            " --weight or --fit"
        )
    args.index = args.index or _default_index(args.corpus)
    # The fixed ending protects other files from being replaced by an index.
    if not args.index.endswith(".index"):
        parser.error(
            f"--index is {args.index}; expected a file name that ends in"
            " .index. Pass a name such as texts.index"
        )
    return args


def _add_question_flags(parser: flags.FlagParser) -> None:
    """Add the flags of the corpus and of the sources of questions."""
    parser.add_argument(
        "corpus", metavar="FOLDER", help="a folder of texts, or one text"
    )
    parser.add_argument("question", nargs="?", metavar="QUESTION")
    flags.add_flags(
        parser,
        "the questions",
        (
            "questions",
            None,
            "FILE",
            "JSON lines; each line contains a question",
        ),
        (
            "fit",
            None,
            "FILE",
            "questions and answers in SQuAD's format: fit the weight of"
            " retrieval to these questions, write the weight to"
            " INDEX.fit.json, and print the gains and losses of retrieval",
        ),
        (
            "fit_questions",
            1000,
            "N",
            "maximum number of questions that --fit reads",
        ),
        ("page", False, "", "serve a web page that answers questions"),
        ("port", 8501, "N", "port of the page; 0: any free port"),
    )


def _add_answer_flags(parser: flags.FlagParser) -> None:
    """Add the flags of the model, the index and the output."""
    flags.add_flags(
        parser,
        "the answers",
        (
            "model",
            flags.REQUIRED,
            "DIR",
            "folder of a trial, such as squad_model_1",
        ),
        (
            "task",
            None,
            "NAME",
            "the task; required if the model has several tasks",
        ),
        ("index", None, "FILE", "file of the index; default: FOLDER.index"),
        (
            "language",
            "english",
            "NAME",
            "language of the texts, whose stemmer is used; words in another"
            " script use the stemmer of the most common language in that"
            " script; none: words are not stemmed",
        ),
        ("passages", 5, "N", "number of passages that are read for a question"),
        (
            "weight",
            float,
            "X",
            "weight of retrieval, from 0 to 1 (default: the fitted weight, or"
            " 0.5 if no weight was fitted)",
        ),
        shared_flags.BATCH_SIZE,
        *shared_flags.OUTPUT,
    )


def main(args: argparse.Namespace) -> int:
    """Check the questions, index the texts, load the model and answer."""
    inputs = [*filter(None, (args.questions, args.fit)), args.corpus]
    inputs += find_texts(args.corpus).paths.values()
    writer.check_free(args.output, args.overwrite, inputs)
    if args.page:
        require_server("ask --page")
    from electra_tf.extras.ask.asker import AskedCorpus, Asker
    from electra_tf.extras.ask.index import open_index
    from electra_tf.extras.ask.weight import fit, read_questions
    from electra_tf.prediction.predictor import Predictor

    rows = _read_questions(args)
    examples = []
    if args.fit:
        examples = read_questions(args.fit, shared_flags.report)
    index = open_index(
        args.corpus, args.index, args.language, shared_flags.report
    )
    predictor = Predictor.from_pretrained(
        args.model, args.task, args.batch_size, n_best=1
    )
    asker = Asker(index, predictor, args.passages)
    if args.fit:
        with shared_flags.open_answers(args) as write:
            report = fit(asker, examples, args.fit_questions)
            fitted = {**_fit_conditions(args, index), **report}
            text = json.dumps(fitted, indent=2)
            write_atomically(_fit_file(args), f"{text}\n")
            write(report)
        return 0
    weight = _choose_weight(args, index)
    if args.page:
        corpus = AskedCorpus(asker, weight)
        return serve_model("127.0.0.1", args.port, corpus)
    _write_answers(args, asker, rows, weight)
    return 0


def _default_index(corpus: str) -> str:
    """Return the default path of the index: the corpus's path plus ".index"."""
    path = corpus.rstrip("/")
    if os.path.basename(path) in ("", ".", ".."):
        path = os.path.abspath(corpus)
    return f"{path}.index"


def _read_questions(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the questions, each with the other values of its line."""
    from electra_tf.extras.ask.asker import check_question

    if args.question is not None:
        check_question(args.question, "QUESTION")
        return [{"question": args.question}]
    if not args.questions:
        return []
    rows = []
    for line, row in tables.read_objects(args.questions):
        location = f"{args.questions}:{line}"
        question = values.as_text(row.get("question"))
        if question is None and row.get("question") is not None:
            raise UserError(
                f"{location}: question is {values.describe(row['question'])};"
                " expected a text. Correct the line."
            )
        check_question(question, location)
        rows.append({**row, "question": question})
    return rows


def _write_answers(
    args: argparse.Namespace,
    asker: "Asker",
    rows: Sequence[dict[str, Any]],
    weight: float,
) -> None:
    """Write the answers; all have ids if any question has an id."""
    has_ids = any("id" in row for row in rows)
    with shared_flags.open_answers(args) as write:
        for start in range(0, len(rows), args.batch_size):
            batch = rows[start : start + args.batch_size]
            answers = asker.ask([row["question"] for row in batch], weight)
            for row, answer in zip(batch, answers, strict=True):
                columns = {"question_id": row.get("id")} if has_ids else {}
                write({**columns, **answer})


def _fit_file(args: argparse.Namespace) -> str:
    """Return the path of the file with the fitted weight."""
    return f"{args.index}.fit.json"


def _weights_digest(folder: str) -> dict[str, str]:
    """Return the SHA-256 of a model's weights, by the path of their file.

    For a checkpoint of the original this is the digest of the index, which
    contains the checksums of all tensors.
    """
    from electra_tf.checkpoints.formats import digest_file
    from electra_tf.prediction.loading import find_run

    path = digest_file(find_run(folder)[1])
    return {os.path.abspath(path): file_sha256(path)}


def _fit_conditions(
    args: argparse.Namespace, index: "PassageIndex"
) -> dict[str, Any]:
    """Return the conditions for which a weight is fitted, as plain values.

    The scale of BM25's scores depends on the texts and on the stemming, and the
    best weight depends on the number of passages.
    """
    return {
        "model": _weights_digest(args.model),
        "texts": index.texts_digest,
        "language": args.language,
        "passages": args.passages,
    }


def _choose_weight(args: argparse.Namespace, index: "PassageIndex") -> float:
    """Return the value of --weight, or else the fitted or default weight."""
    if args.weight is not None:
        return args.weight
    path = _fit_file(args)
    fitted = read_json(path) if filesystem.exists(path) else {}
    conditions = _fit_conditions(args, index)
    if fitted.get("model") != conditions["model"]:
        problem = f"has no weight for {args.model}"
    else:
        problem = _describe_mismatch(fitted, conditions)
    if problem:
        shared_flags.report(
            f"{path} {problem}, so the default weight {DEFAULT_WEIGHT} is used."
            " Pass --fit to fit a weight."
        )
        return DEFAULT_WEIGHT
    weight = fitted.get("weight")
    if not isinstance(weight, float) or not 0.0 <= weight <= 1.0:
        raise UserError(
            f"{path}: weight is {weight!r}; expected a number from 0 to 1. Pass"
            " --fit to fit the weight again."
        )
    return weight


def _describe_mismatch(
    fitted: Mapping[str, Any], conditions: Mapping[str, Any]
) -> str | None:
    """Describe why a weight of the same model is not used, or return None.

    Args:
      fitted: content of the file with the fitted weight.
      conditions: the current conditions; see `_fit_conditions`.
    """
    # The values of earlier versions' fits are unknown, and the scale of BM25
    # may have changed since, so such a weight may be worse than the default.
    if unknown := [name for name in conditions if name not in fitted]:
        return (
            "was written by an earlier version, without the"
            f" {join_names(unknown)} of the fit"
        )
    changes = []
    if fitted["texts"] != conditions["texts"]:
        changes.append("other texts")
    for name in ("language", "passages"):
        if fitted[name] != conditions[name]:
            changes.append(
                f"--{name}={fitted[name]} instead of {conditions[name]}"
            )
    return f"has a weight for {join_names(changes)}" if changes else None

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers questions from a folder of texts, and says where they stand.

The texts are text files, JSON lines (.jsonl: a passage under text) and SQuAD's
format (.json). They are indexed once, and again when one changes. A model of
question answering reads the passages that share most with a question; the best
answer is written as JSON, with its file, line, passage and scores.
"""

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

from configure import flags
from configure.errors import UserError
from electra_tf.commands import shared_flags
from electra_tf.commands.serve import require_server, serve_model
from electra_tf.data import tables, values
from electra_tf.extras.ask.text_folder import find_texts
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_sha256
from electra_tf.files.json_files import read_json
from electra_tf.prediction import writer

DEFAULT_WEIGHT = 0.5


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("ask", __doc__)
    parser.add_argument("corpus", metavar="FOLDER", help="of texts, or a text")
    parser.add_argument("question", nargs="?", metavar="QUESTION")
    flags.add_flags(
        parser,
        "what is asked",
        ("questions", None, "FILE", "JSON lines with a question each"),
        (
            *("fit", None, "FILE"),
            "questions with answers, in SQuAD's format: fit the weight on them"
            " (kept in INDEX.fit.json), and say what retrieval finds and loses",
        ),
        ("fit_questions", 1000, "N", "of them at most are read"),
        ("page", False, "", "serve a page to ask on, on this machine"),
        ("port", 8501, "N", "of the page; 0: any free one"),
    )
    flags.add_flags(
        parser,
        "how",
        ("model", flags.REQUIRED, "DIR", "a trial's folder (squad_model_1)"),
        ("task", None, "NAME", "which task, where the model learned several"),
        ("index", None, "FILE", "default: FOLDER.index"),
        (
            "language",
            "english",
            "NAME",
            "whose stems words get; of another script, those of its largest"
            " language; none: no stemming",
        ),
        ("passages", 5, "N", "are read for a question"),
        ("weight", float, "X", "retrieval's, 0 to 1; default: fitted, or 0.5"),
        shared_flags.BATCH_SIZE,
        *shared_flags.OUTPUT,
    )
    args = parser.parse_args(list(argv[1:]))
    given = (args.question, args.questions, args.fit, args.page or None)
    if sum(one is not None for one in given) != 1:
        parser.error("expected one of QUESTION, --questions, --fit, --page")
    for name in ("fit_questions", "passages", "batch_size"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if args.weight is not None and not 0 <= args.weight <= 1:
        parser.error(f"--weight is {args.weight}; expected 0 to 1")
    if args.fit and args.weight is not None:
        parser.error("--weight: is what --fit finds; leave one out")
    args.index = args.index or f"{args.corpus.rstrip('/')}.index"
    if not args.index.endswith(".index"):  # Whatever is there is replaced.
        parser.error(f"--index={args.index}: expected a name in .index")
    return args


def main(args: argparse.Namespace) -> int:
    """Checks what was given, indexes, and only then loads the model."""
    inputs = [*filter(None, (args.questions, args.fit)), args.corpus]
    inputs += find_texts(args.corpus).paths.values()
    writer.check_free(args.output, args.overwrite, inputs)
    from electra_tf.extras.ask import retrieval
    from electra_tf.prediction.predictor import Predictor

    if args.page:
        require_server("ask --page")
    asked: list[dict[str, Any]] = []
    if args.question is not None:
        retrieval.check_question(args.question, "QUESTION")
        asked = [{"question": args.question}]
    elif args.questions:
        for line, own in tables.read_objects(args.questions):
            place = f"{args.questions}:{line}"
            question = values.as_text(own.get("question"))
            if question is None and own.get("question") is not None:
                raise UserError(
                    f"{place}: question is {values.described(own['question'])};"
                    " expected a text"
                )
            retrieval.check_question(question, place)
            asked.append({**own, "question": question})
    say = shared_flags.report
    known = retrieval.read_known(args.fit, say) if args.fit else []
    weight = _weight(args, kept := f"{args.index}.fit.json")
    index = retrieval.open_index(args.corpus, args.index, args.language, say)
    predictor = Predictor.from_pretrained(
        args.model, args.task, args.batch_size, n_best=1
    )
    asker = retrieval.Asker(index, predictor, args.passages)
    if args.page:
        corpus = retrieval.AskedCorpus(asker, weight)
        return serve_model("127.0.0.1", args.port, corpus)
    with shared_flags.open_answers(args) as write:
        if args.fit:
            report = retrieval.fit(asker, known, args.fit_questions)
            text = {"model": _identity(args.model), **report}
            write_atomically(kept, json.dumps(text, indent=2) + "\n")
            write(report)
        has_ids = any("id" in own for own in asked)
        for start in range(0, len(asked), args.batch_size):
            part = asked[start : start + args.batch_size]
            answers = asker.ask([own["question"] for own in part], weight)
            for own, answer in zip(part, answers, strict=True):
                place = {"question_id": own.get("id")} if has_ids else {}
                write({**place, **answer})
    return 0


def _identity(folder: str) -> dict[str, str]:
    """The file of a model's weights; an index has the tensors' checksums."""
    from electra_tf.checkpoints.formats import digest_file
    from electra_tf.prediction.loading import find_run

    path = digest_file(find_run(folder)[1])
    return {os.path.abspath(path): file_sha256(path)}


def _weight(args: argparse.Namespace, path: str) -> float:
    """As given, else as fitted for this model, else the default."""
    if args.weight is not None:
        return args.weight
    kept = read_json(path) if filesystem.exists(path) else {}
    if kept.get("model") != _identity(args.model):
        if not args.fit:
            shared_flags.report(
                f"weight {DEFAULT_WEIGHT}: {path} has none for {args.model};"
                " --fit fits one"
            )
        return DEFAULT_WEIGHT
    weight = kept.get("weight")
    if not isinstance(weight, float) or not 0.0 <= weight <= 1.0:
        raise UserError(f"{path}: weight: found {weight!r}; expected 0 to 1")
    return weight

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers for new data, with any fine-tuned model.

Labels with probabilities, numbers, tags, answers to questions, summaries. Reads
files or standard input, one question after the other (files may be larger than
memory), and writes an answer for each, in the same order. Lines that cannot be
used are named, counted and left out.
"""

import argparse
import collections
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from configure import flags
from configure.errors import UserError
from electra_tf import use_onednn
from electra_tf.commands import shared_flags
from electra_tf.data.tables import file_format

if TYPE_CHECKING:
    from electra_tf.prediction.predictor import Predictor
    from electra_tf.prediction.reader import Read


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("predict", __doc__)
    flags.add_flags(
        parser,
        "the model",
        (
            *("model", flags.REQUIRED, "DIR"),
            "folder of a trial, as run_finetuning.py leaves it (..._model_1), a"
            " folder of transformers, or hf:OWNER/NAME",
        ),
        ("task", None, "NAME", "which task, where the model learned several"),
        ("task_config", None, "FILE", "the task's description, if it moved"),
        ("data_dir", None, "DIR", "the data directory, if it has moved"),
        ("vocab_file", None, "FILE", "default: the one in the folder"),
        (
            *("like", None, "SPLIT"),
            "the files look as those of this split of the task: its columns"
            " and header",
        ),
        shared_flags.BATCH_SIZE,
    )
    shared_flags.add_input_flags(parser)
    flags.add_flags(
        parser,
        "what is written",
        *shared_flags.OUTPUT,
        ("echo", False, "", "repeat the question in each answer"),
        (
            *("probabilities", True, ""),
            "false: leave out the probabilities of all labels",
        ),
        (
            *("all_tags", False, ""),
            "tagging: the probabilities of all tags, for `ensemble`",
        ),
        ("n_best", 3, "N", "answers listed, up to the run's n_best_size"),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Predicts; 0 unless nothing could be answered."""
    use_onednn(True)  # For batches of many texts.
    # Before TensorFlow, which takes seconds.
    shared_flags.check_files(args)
    from electra_tf.prediction.predictor import Predictor

    names = ("task_config", "data_dir", "vocab_file")
    given = {name: getattr(args, name) for name in names}
    predictor = Predictor.from_pretrained(
        args.model,
        args.task,
        args.batch_size,
        args.n_best,
        **{name: value for name, value in given.items() if value is not None},
    )
    predictor.answerer.all_tags = args.all_tags
    columns, header, kind = _columns(predictor, args.like)
    if args.header is None:
        args.header = header
    own = {source.kind() for source in shared_flags.make_sources(args, {})}
    if predictor.task.spec.format or own == {"text"}:
        args.format = args.format or kind
    optional = predictor.answerer.optional
    run = shared_flags.Run(args, columns, optional=optional)
    waiting: collections.deque[tuple[int, Read]] = collections.deque()

    def items() -> Iterator[Any]:
        for number, read in enumerate(run.lines()):
            waiting.append((number, read))
            yield read.values

    def refused(number: int, error: Any) -> None:
        read = next(read for n, read in waiting if n == number)
        run.refuse(read, error.found, error.expected)

    with run, shared_flags.answers(args) as write:
        for number, answer in predictor.stream(items(), refused):
            while waiting[0][0] < number:
                waiting.popleft()
            _, read = waiting.popleft()
            if not args.probabilities:
                answer.pop("probabilities", None)
            echo = read.values if args.echo else {}
            write({**run.place_of(read), **echo, **answer})
            run.count()
        if not run.rows:  # What was there before stays.
            run.say_summary("answers")
            raise UserError("no line could be answered")
    for what, count in predictor.task.row_report.losses.items():
        shared_flags.say(f"{count:,} {what}")
    run.say_summary("answers")
    return 0


def _columns(
    predictor: "Predictor", like: str | None
) -> tuple[dict[str, list[int | str]], bool | None, str | None]:
    """What columns may be called, whether there is a header, the format."""
    spec, names = predictor.task.spec, predictor.answerer.columns
    split = spec if like is None else spec.split(like, "")
    columns = {{"word": "words"}.get(n, n): c for n, c in split.columns.items()}
    if like is None:
        own = {n: [c] for n, c in columns.items() if isinstance(c, str)}
        found = {
            name: [*own.get(name, ()), *others, i]
            for i, (name, others) in enumerate(names.items())
        }
        return found, None, None
    places = {n: [c] for n, c in columns.items() if n in names}
    named = {n: list(o) for n, o in names.items()} | places
    return named, split.header, spec.format or file_format(split.path)

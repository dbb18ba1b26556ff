# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predict answers for new data, with any fine-tuned model.

Answers are labels with probabilities, numbers, tags, answers to questions, or
summaries. Files or standard input are read line by line (files may be larger
than memory), and an answer is written for each line, in the same order.
Unusable lines are named, counted and left out.
"""

import argparse
import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from configure import flags
from configure.errors import UserError
from electra_tf import use_onednn
from electra_tf.commands import shared_flags
from electra_tf.commands.input_stream import InputStream
from electra_tf.data.tables import resolve_format

if TYPE_CHECKING:
    from electra_tf.prediction.predictor import Predictor
    from electra_tf.prediction.reader import InputRow


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("predict", __doc__)
    flags.add_flags(
        parser,
        "the model",
        (
            "model",
            flags.REQUIRED,
            "DIR",
            "folder of a trial of run_finetuning.py (..._model_1), a folder of"
            " transformers, or hf:OWNER/NAME",
        ),
        ("task", None, "NAME", "the task; required if the model has several"),
        ("task_config", None, "FILE", "new path of the task's description"),
        ("data_dir", None, "DIR", "new path of the data directory"),
        ("vocab_file", None, "FILE", "default: the vocabulary in the folder"),
        (
            "like",
            None,
            "SPLIT",
            "split of the task whose columns and header the files have",
        ),
        shared_flags.BATCH_SIZE,
    )
    shared_flags.add_input_flags(parser)
    flags.add_flags(
        parser,
        "the answers",
        *shared_flags.OUTPUT,
        ("echo", False, "", "repeat the input in each answer"),
        (
            "probabilities",
            True,
            "",
            "false: leave out the probabilities of all labels",
        ),
        (
            "all_tags",
            False,
            "",
            "tagging: write the probabilities of all tags, for `ensemble`",
        ),
        (
            "n_best",
            3,
            "N",
            "question answering: number of answers that are listed, at most"
            " the n_best_size of the run",
        ),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Write an answer for every usable line.

    Raises:
      UserError: no line could be answered; an existing output file stays.
    """
    use_onednn(True)  # oneDNN speeds up batches of many texts.
    # Files are checked before TensorFlow is imported, which takes seconds.
    shared_flags.check_files(args)
    predictor = _load_predictor(args)
    columns, header, kind = _find_columns(predictor, args.like)
    if args.header is None:
        args.header = header
    sources = shared_flags.make_sources(args, {})
    are_plain_text = {source.kind() for source in sources} == {"text"}
    if predictor.task.spec.format or are_plain_text:
        args.format = args.format or kind
    stream = InputStream(args, columns, optional=predictor.answerer.optional)
    # The lines that were read and have no answer yet, with their numbers.
    waiting: collections.deque[tuple[int, InputRow]] = collections.deque()

    def read_items() -> Iterator[Any]:
        for number, read in enumerate(stream.lines()):
            waiting.append((number, read))
            yield read.values

    def refuse(number: int, error: Any) -> None:
        read = next(read for n, read in waiting if n == number)
        stream.refuse(read, error.content, error.expected)

    with stream, shared_flags.open_answers(args) as write:
        for number, answer in predictor.stream(read_items(), refuse):
            while waiting[0][0] < number:
                waiting.popleft()
            _, read = waiting.popleft()
            if not args.probabilities:
                answer.pop("probabilities", None)
            echo = predictor.answerer.echo(read.values) if args.echo else {}
            write(_merge(stream.location(read), echo, answer))
            stream.count()
        # The error is raised inside the block, so that an earlier output file
        # stays.
        if not stream.rows:
            stream.report_summary("answers")
            raise UserError(
                "no line could be answered. Correct the lines named above."
            )
    for what, count in predictor.task.row_report.losses.items():
        shared_flags.report(f"{count:,} {what}")
    stream.report_summary("answers")
    return 0


def _merge(
    location: Mapping[str, Any],
    echo: Mapping[str, Any],
    answer: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the output for an input: its location, its values, its answer.

    Raises:
      UserError: two of them have different values for a key, so that one value
        would be lost.
    """
    output = dict(location)
    for name, value in (*echo.items(), *answer.items()):
        if output.setdefault(name, value) != value:
            raise UserError(
                "--echo: the input and its answer have different values for"
                f" the key {name!r}; expected one value for each key. Remove"
                " --echo."
            )
    return output


def _load_predictor(args: argparse.Namespace) -> "Predictor":
    """Return the predictor of the flags' model and task."""
    from electra_tf.prediction.predictor import Predictor

    overrides = {
        "task_config": args.task_config,
        "data_dir": args.data_dir,
        "vocab_file": args.vocab_file,
    }
    predictor = Predictor.from_pretrained(
        args.model,
        args.task,
        args.batch_size,
        args.n_best,
        **{n: value for n, value in overrides.items() if value is not None},
    )
    predictor.answerer.all_tags = args.all_tags
    return predictor


def _find_columns(
    predictor: "Predictor", like: str | None
) -> tuple[dict[str, list[int | str]], bool | None, str | None]:
    """Return the columns, header and format of the input file.

    Args:
      predictor: the model and its task.
      like: a split of the task whose format is used; None: the task's names,
        then the usual names, then the columns in order.

    Returns:
      Name of a value -> columns; whether the files have a header (None:
      inferred); their format (None: from the names).
    """
    spec, usual_names = predictor.task.spec, predictor.answerer.columns
    split = spec if like is None else spec.find_split(like, "")
    task_columns = {}
    for name, column in split.columns.items():
        # Descriptions name the column of a word "word", but answers name it
        # "words".
        task_columns["words" if name == "word" else name] = column
    columns = {}
    for index, (name, others) in enumerate(usual_names.items()):
        column = task_columns.get(name)
        if like is None:
            # Column numbers fit only the task's own files, but column names may
            # fit any file.
            first = [column] if isinstance(column, str) else []
            columns[name] = [*first, *others, index]
        else:
            columns[name] = [*others] if column is None else [column]
    if like is None:
        return columns, None, None
    return columns, split.header, spec.format or resolve_format(split.path)

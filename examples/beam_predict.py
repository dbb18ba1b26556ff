# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predict or embed the texts of files of any size, with Apache Beam.

python examples/beam_predict.py --model exported/sst/1 \
    --input 'reviews/*.jsonl' --output answers/reviews [Beam's flags]

The model is a folder written by export_model; workers need tensorflow_text and
apache_beam, but not this project. A row is a JSON object with the inputs of
serve_text (`text`; pairs also `text_pair`). An answer has the row's `id`, or
the whole row if `id` is missing. Bad rows are written to OUTPUT.bad-*.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers operations
from apache_beam.ml.inference import base
from apache_beam.options.pipeline_options import PipelineOptions


class RawTextModel(base.ModelHandler[dict, dict, Any]):
    """A SavedModel that takes rows of text."""

    def __init__(self, folder: str) -> None:
        super().__init__(max_batch_size=32)
        self._folder = folder

    def load_model(self) -> Any:
        return tf.saved_model.load(self._folder)

    def run_inference(
        self, batch: Sequence[dict], model: Any, inference_args: Any = None
    ) -> Iterator[dict]:
        serve = model.signatures["serve_text"]
        names = serve.structured_input_signature[1]
        texts = {n: tf.constant([row[n] for row in batch]) for n in names}
        outputs = serve(**texts)
        kind = model.kind.numpy().decode()
        labels = [label.decode() for label in model.labels.numpy()]
        for i in range(len(batch)):
            row = {name: value[i].numpy() for name, value in outputs.items()}
            yield format_answer(kind, labels, row)


def format_answer(
    kind: str, labels: list[str], outputs: dict[str, Any]
) -> dict:
    """Return a row's outputs in the format of `predict` and `embed`.

    Outputs of taggers and of question answering are unchanged.
    """
    # `embed` returns the mean of the tokens, so it is computed here.
    if kind == "encoder":
        tokens = outputs["sequence_output"][outputs["input_mask"] > 0]
        return {"vector": tokens.mean(0).tolist()}
    outputs = {
        name: value if isinstance(value, bytes) else value.tolist()
        for name, value in outputs.items()
    }
    if kind == "regression":
        return {"value": outputs["value"]}
    if kind not in ("classification", "multilabel"):
        return outputs
    probabilities = dict(zip(labels, outputs["probabilities"], strict=True))
    if kind == "multilabel":
        choices = zip(labels, outputs["chosen"], strict=True)
        answer = {"labels": [label for label, chosen in choices if chosen]}
    else:
        label = labels[outputs["label_id"]]
        answer = {"label": label, "probability": probabilities[label]}
    return {**answer, "probabilities": probabilities}


def main(argv: Sequence[str]) -> None:
    """Run the pipeline; pass unknown flags to Beam."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "input", "output"):
        parser.add_argument(f"--{name}", required=True)
    args, flags = parser.parse_known_args(argv)
    serve = tf.saved_model.load(args.model).signatures["serve_text"]
    names = list(serve.structured_input_signature[1])
    expected = f"a JSON object with the texts {' and '.join(names)}"

    def read(line: bytes) -> Iterator[Any]:
        try:
            row = json.loads(line)
            "".join(row[name] for name in names).encode()
            yield {"id": row["id"]} if "id" in row else row, row
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            bad = {"found": line.decode("utf-8", "replace")}
            bad |= {"expected": expected, "problem": repr(error)}
            yield beam.pvalue.TaggedOutput("bad", bad)

    options = PipelineOptions(["--runner=FnApiRunner", *flags])
    with beam.Pipeline(options=options) as pipeline:
        lines = beam.io.ReadFromText(args.input, coder=beam.coders.BytesCoder())
        sorted_out = beam.FlatMap(read).with_outputs("bad", main="good")
        rows = pipeline | lines | sorted_out
        handler = base.KeyedModelHandler(RawTextModel(args.model))
        outputs = rows.good | beam.Reshuffle() | base.RunInference(handler)
        answers = outputs | beam.MapTuple(lambda key, answer: {**key, **answer})
        parts = {args.output: answers, f"{args.output}.bad": rows.bad}
        for path, part in parts.items():
            written = beam.io.WriteToText(path, ".jsonl")
            made = f"{path}: JSON" >> beam.Map(json.dumps, default=bytes.decode)
            part | made | path >> written


if __name__ == "__main__":
    main(sys.argv[1:])

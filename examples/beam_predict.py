# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What `predict` and `embed` say of files of any size, by Apache Beam.

python examples/beam_predict.py --model exported/sst/1 \
    --input 'reviews/*.jsonl' --output answers/reviews [Beam's flags]

The model is what export_model writes; workers need tensorflow_text and
apache_beam, and nothing of this project. A row is a JSON object with what
serve_text takes (`text`; pairs also `text_pair`); its `id` is handed on,
without one the row itself. Bad rows go to OUTPUT.bad-*.
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
        found = serve(**texts)
        kind = model.kind.numpy().decode()
        labels = [label.decode() for label in model.labels.numpy()]
        for i in range(len(batch)):
            own = {name: value[i].numpy() for name, value in found.items()}
            yield in_words(kind, labels, own)


def in_words(kind: str, labels: list[str], own: dict[str, Any]) -> dict:
    """A row's outputs as `predict` has them; other kinds' as they are."""
    if kind == "encoder":  # the mean of `embed`
        tokens = own["sequence_output"][own["input_mask"] > 0]
        return {"vector": tokens.mean(0).tolist()}
    own = {n: x if isinstance(x, bytes) else x.tolist() for n, x in own.items()}
    if kind == "regression":
        return {"value": own["value"]}
    if kind not in ("classification", "multilabel"):
        return own
    shares = dict(zip(labels, own["probabilities"], strict=True))
    if kind == "multilabel":
        chosen = zip(labels, own["chosen"], strict=True)
        answer = {"labels": [label for label, is_so in chosen if is_so]}
    else:
        label = labels[own["label_id"]]
        answer = {"label": label, "probability": shares[label]}
    return {**answer, "probabilities": shares}


def main(argv: Sequence[str]) -> None:
    """Reads, asks, writes; what is no flag of ours is Beam's."""
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
        found = rows.good | beam.Reshuffle() | base.RunInference(handler)
        answers = found | beam.MapTuple(lambda place, own: {**place, **own})
        parts = {args.output: answers, f"{args.output}.bad": rows.bad}
        for path, part in parts.items():
            written = beam.io.WriteToText(path, ".jsonl")
            made = f"{path}: JSON" >> beam.Map(json.dumps, default=bytes.decode)
            part | made | path >> written


if __name__ == "__main__":
    main(sys.argv[1:])

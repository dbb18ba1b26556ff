# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converted fine-tuned models give the same answers in transformers."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.commands import convert_checkpoint
from electra_tf.finetuning import runner
from electra_tf.prediction.answers import make_answerer
from electra_tf.prediction.loading import load_finetuned
from electra_tf.prediction.predictor import Predictor
from electra_tf.training.console import Console

pytestmark = pytest.mark.heavy
WORDS, ROWS, QUESTIONS = 2000, 500, 300
LENGTH = 256  # wordpieces of a question and its passage
# Rows or lines of training data: enough for different answers.
LEARNED = {"chunk": 20000, "sst": 4001}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, reference_dir, transformers):
    """Return a function that fine-tunes the recorded tiny model.

    It returns the folder of the trial and that of the data.
    """
    root = tmp_path_factory.mktemp("answers")
    source = reference_dir / "data" / "finetuning_data"
    shutil.copy(reference_dir / "data" / "vocab" / "vocab.txt", root)

    def train(task, **hparams):
        data = root / "finetuning_data" / task
        data.mkdir(parents=True)
        for path in (source / task).iterdir():
            if path.suffix == ".json":  # one article for training
                content = json.loads(path.read_text())
                content["data"] = content["data"][:1]
                (data / path.name).write_text(json.dumps(content))
            else:
                lines = path.open().readlines()[: LEARNED[task]]
                (data / path.name).write_text("".join(lines))
        config = FinetuningConfig.create(
            "tiny",
            str(root),
            task_names=[task],
            num_trials=1,
            do_eval=False,
            train_batch_size=16,
            learning_rate=1e-3,
            num_train_epochs=2.0,
            init_checkpoint=str(reference_dir / "golden/ckpt_pretrain_tiny"),
            model_hparam_overrides={"num_attention_heads": 4},
            **hparams,
        )
        runner.run(config, Console())
        return f"{config.model_dir}_1", source / task

    return train


@pytest.fixture(scope="module")
def ask_transformers(tmp_path_factory, transformers):
    """Return a function that converts a trial and runs a job on it."""

    def ask(job, folder, **arguments):
        directory = tmp_path_factory.mktemp("converted")
        converted, out = directory / "hf", directory / "out"
        argv = ["convert", folder, str(converted)]
        argv += ["--output_format=huggingface", "--strip_optimizer"]
        argv.append("--drop_unrepresentable")
        convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
        keywords = {"folder": str(converted), "out": str(out)}
        transformers((job, keywords | arguments))
        return json.loads(out.read_text())

    return ask


def test_tags_of_words_are_equal(trained, ask_transformers):
    folder, data = trained("chunk", max_seq_length=128)
    sentences, count = [], 0
    for block in (data / "dev.txt").read_text().split("\n\n"):
        sentence = [line.split()[0] for line in block.splitlines()]
        if sentence and len(sentence) < 50:  # This project cuts none of these.
            sentences.append(sentence)
            count += len(sentence)
        if count >= WORDS:
            break
    expected = ask_transformers("tag", folder, sentences=sentences)
    answers = Predictor.from_pretrained(folder)(sentences)
    ours = [answer["tags"] for answer in answers]
    flat = [tag for tags in expected for tag in tags]
    assert flat == [tag for tags in ours for tag in tags]
    assert len(flat) >= WORDS and len(set(flat)) > 3
    print(f"{len(flat)} words, {len(set(flat))} different tags: all equal")


def test_labels_and_logits_of_texts_are_equal(trained, ask_transformers):
    folder, data = trained("sst", max_seq_length=128)
    lines = (data / "dev.tsv").read_text().splitlines()[1 : ROWS + 1]
    texts = [line.split("\t")[0].strip() for line in lines]
    expected = ask_transformers("classify", folder, texts=texts)
    answers = Predictor.from_pretrained(folder)(texts)
    labels = [answer["label"] for answer in answers]
    assert labels == [label for label, _ in expected]
    assert len({label for label, _ in expected}) == 2
    ours = logits_of(load_finetuned(folder), texts)["logits"]
    error = np.abs(ours - np.array([logits for _, logits in expected])).max()
    print(f"{len(texts)} rows: labels equal, logits within {error:.1e}")
    assert len(texts) == ROWS and error <= 1e-4


def test_answers_to_questions_are_equal(trained, ask_transformers):
    hparams = {"max_seq_length": LENGTH, "joint_prediction": False}
    folder, data = trained("squadv1", **hparams)
    loaded = load_finetuned(folder)
    pairs, ids = [], []
    for article in json.loads((data / "dev.json").read_text())["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                pair = question["question"], paragraph["context"]
                rows = featurize(loaded, pair)
                if len(rows) == 1:  # The pair fits into one window.
                    pairs.append(pair)
                    ids.append(rows[0]["input_ids"])
    pairs = pairs[:QUESTIONS]
    expected = ask_transformers("find_spans", folder, pairs=pairs)
    outputs, error, spans, expected_spans = (
        logits_of(loaded, pairs),
        0.0,
        [],
        [],
    )
    for i, (pieces, *logits) in enumerate(expected):
        count = len(pieces)
        ours = [outputs[f"{n}_logits"][i][:count] for n in ("start", "end")]
        passage = pieces.index(loaded.task()._sep_id) + 1
        spans.append(best_span(*ours, passage, count - 1))
        expected_spans.append(best_span(*logits, passage, count - 1))
        gap = np.abs(np.array(ours) - logits)[:, passage : count - 1]
        error = max(error, gap.max())
    all_pieces = [pieces for pieces, *_ in expected]
    padded = [row + [0] * (LENGTH - len(row)) for row in all_pieces]
    assert [[*row] for row in ids[: len(pairs)]] == padded
    assert spans == expected_spans
    print(
        f"{len(expected)} questions, {len({*spans})} different spans: all"
        f" equal; logits within {error:.1e}"
    )
    assert len(expected) == QUESTIONS and len({*spans}) > 20 and error < 1e-4


def best_span(start, end, first, last, longest=30):
    """Return the likeliest start and end in a passage of wordpieces."""
    spans = [
        (start[i] + end[j], i, j)
        for i in range(first, last)
        for j in range(i, min(i + longest, last))
    ]
    return max(spans)[1:]


def featurize(loaded, item):
    """Return a model's rows of a text, or of a question and its text."""
    example = make_answerer(loaded.task(), 1).example(item, 0)
    rows = loaded.task().featurize(example, is_training=False)
    return rows if isinstance(rows, list) else [rows]


def logits_of(loaded, items):
    """Return the head's logits by name, one row per item."""
    rows = [featurize(loaded, item)[0] for item in items]
    batches = []
    for start in range(0, len(rows), 50):
        features = {
            name: tf.constant([row[name] for row in rows[start : start + 50]])
            for name in ("input_ids", "input_mask", "segment_ids")
        }
        encoded = loaded.model.encoder(*features.values())
        outputs = loaded.model.heads[0].logits(encoded, features)
        batches.append({n: np.asarray(v) for n, v in outputs.items()})
    return {n: np.concatenate([f[n] for f in batches]) for n in batches[0]}

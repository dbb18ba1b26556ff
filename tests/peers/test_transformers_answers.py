# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuned models, exported, give transformers' users our answers."""

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
# Rows (or lines) to learn from: enough that answers differ.
LEARNED = {"chunk": 20000, "sst": 4001}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, reference_dir, transformers):
    """Fine-tunes the recorded tiny model: the trial's folder, and its data."""
    root = tmp_path_factory.mktemp("answers")
    source = reference_dir / "data" / "finetuning_data"
    shutil.copy(reference_dir / "data" / "vocab" / "vocab.txt", root)

    def train(task, **hparams):
        data = root / "finetuning_data" / task
        data.mkdir(parents=True)
        for path in (source / task).iterdir():
            if path.suffix == ".json":  # one article to learn from
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
def there(tmp_path_factory, transformers):
    """Converts a trial and has transformers do a job with it."""

    def ask(job, folder, **arguments):
        place = tmp_path_factory.mktemp("there")
        words = [folder, str(place / "hf"), "--output_format=huggingface"]
        words += ["--strip_optimizer", "--drop_unrepresentable"]
        args = convert_checkpoint.parse_flags(["convert", *words])
        convert_checkpoint.main(args)
        keywords = {"folder": str(place / "hf"), "out": str(place / "out")}
        transformers((job, keywords | arguments))
        return json.loads((place / "out").read_text())

    return ask


def test_tags_of_words_are_equal(trained, there):
    folder, data = trained("chunk", max_seq_length=128)
    sentences, count = [], 0
    for block in (data / "dev.txt").read_text().split("\n\n"):
        words = [line.split()[0] for line in block.splitlines()]
        if words and len(words) < 50:  # none is cut on our side
            sentences.append(words)
            count += len(words)
        if count >= WORDS:
            break
    theirs = there("tag", folder, sentences=sentences)
    ours = [one["tags"] for one in Predictor.from_pretrained(folder)(sentences)]
    flat = [tag for tags in theirs for tag in tags]
    assert flat == [tag for tags in ours for tag in tags]
    assert len(flat) >= WORDS and len(set(flat)) > 3
    print(f"{len(flat)} words, {len(set(flat))} different tags: all equal")


def test_labels_and_logits_of_texts_are_equal(trained, there):
    folder, data = trained("sst", max_seq_length=128)
    lines = (data / "dev.tsv").read_text().splitlines()[1 : ROWS + 1]
    texts = [line.split("\t")[0].strip() for line in lines]
    theirs = there("classify", folder, texts=texts)
    answers = Predictor.from_pretrained(folder)(texts)
    assert [one["label"] for one in answers] == [label for label, _ in theirs]
    assert len({label for label, _ in theirs}) == 2
    ours = logits_of(load_finetuned(folder), texts)["logits"]
    error = np.abs(ours - np.array([logits for _, logits in theirs])).max()
    print(f"{len(texts)} rows: labels equal, logits within {error:.1e}")
    assert len(texts) == ROWS and error <= 1e-4


def test_answers_to_questions_are_equal(trained, there):
    hparams = {"max_seq_length": LENGTH, "joint_prediction": False}
    folder, data = trained("squadv1", **hparams)
    loaded = load_finetuned(folder)
    pairs, ids = [], []
    for article in json.loads((data / "dev.json").read_text())["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                pair = question["question"], paragraph["context"]
                rows = featurize(loaded, pair)
                if len(rows) == 1:  # it fits into one window
                    pairs.append(pair)
                    ids.append(rows[0]["input_ids"])
    pairs = pairs[:QUESTIONS]
    theirs = there("find_spans", folder, pairs=pairs)
    ours, error, answers = logits_of(loaded, pairs), 0.0, set()
    for i, (pieces, *logits) in enumerate(theirs):
        count = len(pieces)
        assert pieces == ids[i][:count] and not any(ids[i][count:])
        mine = [ours[f"{n}_logits"][i][:count] for n in ("start", "end")]
        passage = pieces.index(loaded.task()._sep_id) + 1
        spans = [best_span(*one, passage, count - 1) for one in (mine, logits)]
        assert spans[0] == spans[1]
        answers.add(spans[0])
        gap = np.abs(np.array(mine) - logits)[:, passage : count - 1]
        error = max(error, gap.max())
    print(
        f"{len(theirs)} questions, {len(answers)} different spans: all equal;"
        f" logits within {error:.1e}"
    )
    assert len(theirs) == QUESTIONS and len(answers) > 20 and error < 1e-4


def best_span(start, end, first, last, longest=30):
    """The likeliest start and end in a passage of wordpieces."""
    spans = [
        (start[i] + end[j], i, j)
        for i in range(first, last)
        for j in range(i, min(i + longest, last))
    ]
    return max(spans)[1:]


def featurize(loaded, item):
    """The rows that a model reads of a text, or a question and its text."""
    example = make_answerer(loaded.task(), 1).example(item, 0)
    rows = loaded.task().featurize(example, is_training=False)
    return rows if isinstance(rows, list) else [rows]


def logits_of(loaded, items):
    """Our head's logits, one row an item."""
    rows = [featurize(loaded, item)[0] for item in items]
    found = []
    for start in range(0, len(rows), 50):
        features = {
            name: tf.constant([row[name] for row in rows[start : start + 50]])
            for name in ("input_ids", "input_mask", "segment_ids")
        }
        encoded = loaded.model.encoder(*features.values())
        outputs = loaded.model.heads[0].logits(encoded, features)
        found.append({n: np.asarray(v) for n, v in outputs.items()})
    return {n: np.concatenate([f[n] for f in found]) for n in found[0]}

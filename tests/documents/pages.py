# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tests add to each document: data, small sizes, what cannot run."""

import json
import shutil

import numpy as np

from electra_tf.checkpoints.tf1 import open_tf1, write_tf1
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.commands.demo import corpus_lines
from tests.conftest import FIXTURES
from tests.documents.session import Page

# Sizes for tests: flags that follow the document's own.
TINY = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
PRETRAINING = [
    "--num_train_steps=2",
    "--num_warmup_steps=1",
    "--unigram_steps=0",
    "--train_batch_size=4",
    "--eval_batch_size=4",
    "--num_eval_steps=1",
    "--max_seq_length=64",
    "--vocab_size=400",
    f"--model_hparam_overrides={json.dumps(TINY)}",
]
FINETUNING = [
    "--num_train_epochs=1",
    "--train_batch_size=4",
    "--eval_batch_size=4",
    "--max_seq_length=32",
    "--num_trials=1",
]
FLAGS = {
    "run_pretraining.py": PRETRAINING,
    "run_finetuning.py": FINETUNING,
    "run_glue": FINETUNING,
}
# The sizes of the original's recorded model.
ORIGINAL = [
    "--num_train_steps=51",
    "--num_warmup_steps=1",
    "--train_batch_size=4",
    "--max_seq_length=16",
    "--vocab_size=200",
    "--embedding_size=16",
    "--generator_hidden_size=0.5",
    "--model_hparam_overrides="
    + json.dumps(
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    ),
]
# Hparams of a model for the records of length 16.
TINY_FIT = {
    "model_hparam_overrides": TINY,
    "vocab_size": 200,
    "embedding_size": 16,
    "max_seq_length": 16,
    "train_batch_size": 4,
    "num_warmup_steps": 1,
}
PIP = "downloads packages; tests/test_installation.py checks what is installed"
CHUNK = "The DT B-NP\ncat NN I-NP\nsat VBD B-VP\n. . O\n\n"
COLA = "gj04\t1\t\tThe cat sat.\nc-05\t0\t*\tCat the sat.\n"
TASK_FILES = {
    "chunk": {"train.txt": CHUNK * 8, "dev.txt": CHUNK * 8},
    "cola": {
        "train.tsv": COLA * 4,
        "dev.tsv": COLA * 4,
        "test.tsv": "index\tsentence\n0\tThe cat sat.\n",
    },
}


def write_corpus(folder, name="corpus"):
    """Write a part of the demo's corpus: some 60 documents."""
    text = "\n".join(corpus_lines()[:1500]) + "\n"
    (folder / name).mkdir()
    (folder / name / "text.txt").write_text(text)


def write_tasks(folder, *tasks):
    for task in tasks:
        path = folder / "data" / "finetuning_data" / task
        path.mkdir(parents=True)
        for name, text in TASK_FILES[task].items():
            (path / name).write_text(text)


def write_reviews(folder):
    """Write a task whose labels follow from one word of each text."""
    adjectives_of = {
        "good": ["moving", "fine", "great"],
        "bad": ["dull", "poor", "sad"],
    }
    rows = [
        f"a{very} {word} {noun},{label}"
        for label, adjectives in adjectives_of.items()
        for word in adjectives
        for noun in ("film", "play", "story", "book")
        for very in ("", " very")
    ]
    (folder / "reviews").mkdir()
    for name in ("train.csv", "dev.csv"):
        text = "\n".join(["review,stars", *rows]) + "\n"
        (folder / "reviews" / name).write_text(text)


def prepare_readme(folder, fixture):
    write_corpus(folder)
    write_tasks(folder, "chunk", "cola")
    (folder / "sentences.txt").write_text("The cat sat .\n")
    # The folder of a run of the original, with the text's records.
    for name in ("vocab.txt", "pretrain_tfrecords"):
        (folder / "data" / name).symlink_to(folder / "mine" / name)


def prepare_upgrade(folder, fixture):
    """Write a run of the original: weights, slots and step 50."""
    data = folder / "data"
    shutil.copytree(fixture("data_dir"), data)
    shutil.copy(FIXTURES / "vocab_200.txt", data / "vocab.txt")
    recorded = open_tf1(str(FIXTURES / "golden" / "ckpt_v200_electra"))
    tensors = {name: recorded.read(name) for name in recorded.specs}
    for name in [name for name in tensors if name != "global_step"]:
        for slot in ("adam_m", "adam_v"):
            tensors[f"{name}/{slot}"] = np.zeros_like(tensors[name])
    tensors["global_step"] = np.asarray(50, np.int64)
    prefix = data / "models" / "electra_small" / "model.ckpt-50"
    write_tf1(MemoryWeights(tensors), str(prefix))


def prepare_pretraining(folder, fixture):
    write_corpus(folder)


def prepare_finetuning(folder, fixture):
    write_tasks(folder, "chunk", "cola")


def prepare_own_task(folder, fixture):
    write_reviews(folder)


def prepare_keras(folder, fixture):
    data = shutil.copytree(fixture("data_dir"), folder / "data")
    shutil.copy(FIXTURES / "vocab_200.txt", data / "vocab.txt")


DATASET = """\
import tensorflow as tf
dataset = tf.data.Dataset.from_tensor_slices(
    (["a fine film", "a bad film"] * 4, [1, 0] * 4)
).batch(8)
"""
PAGES = {
    "docs/upgrade.md": Page(
        prepare_upgrade,
        {"run_pretraining.py": ORIGINAL},
        replaced={r"\$DATA_DIR": "data"},
    ),
    "docs/pretraining.md": Page(
        prepare_pretraining, FLAGS, replaced={"4000": "400"}
    ),
    "docs/finetuning.md": Page(prepare_finetuning, FLAGS),
    "docs/own_task.md": Page(
        prepare_own_task,
        {"run_finetuning.py": ["--num_train_epochs=8", "--train_batch_size=8"]},
    ),
    "docs/keras.md": Page(
        prepare_keras,
        replaced={
            "num_train_steps=100_000": f"num_train_steps=2, **{TINY_FIT}",
            "steps_per_epoch=1000, epochs=100": "steps_per_epoch=2, epochs=1",
        },
    ),
    "README.md": Page(
        prepare_readme,
        FLAGS,
        replaced={"8000": "400"},
        skipped={"pip install": PIP},
        names=DATASET,
    ),
}

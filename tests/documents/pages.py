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
PIP = "downloads packages; tests/test_installation.py checks what is installed"
CHUNK = "The DT B-NP\ncat NN I-NP\nsat VBD B-VP\n. . O\n\n"
COLA = "gj04\t1\t\tThe cat sat.\nc-05\t0\t*\tCat the sat.\n"
TASK_FILES = {
    "chunk": {"train.txt": CHUNK * 8, "dev.txt": CHUNK * 8},
    "cola": {"train.tsv": COLA * 4, "dev.tsv": COLA * 4},
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
    "README.md": Page(
        prepare_readme,
        FLAGS,
        replaced={"8000": "400"},
        skipped={"pip install": PIP},
        names=DATASET,
    ),
}

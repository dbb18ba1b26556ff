# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Additions of tests to each document: data, small sizes, skipped commands."""

import importlib.util
import json
import shutil
import socket

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
FIT_FLAGS = {
    **TINY_FIT,
    "model_hparam_overrides": json.dumps(TINY),
    "num_train_steps": 2,
    "threads": 1,
}
TINY_STUDY = {
    "description": "A study of two steps.",
    "data_dir": "data",
    "pretrain": {
        **TINY_FIT,
        "vocab_file": "data/vocab.txt",
        "pretrain_tfrecords": "data/pretrain_tfrecords/pretrain_data.tfrecord*",
    },
    "budget": {"steps": 2},
    "tasks": {"chunk": {"num_train_epochs": 1, "train_batch_size": 4}},
}
PIP = "downloads packages; tests/test_installation.py checks what is installed"
DOWNLOAD = "downloads a package of Debian"
NO_EXTRA = "needs the extra beam, which is not installed"
DOCKER = "needs docker and TensorFlow Serving"
SLURM = "needs a cluster with Slurm"
HAS_BEAM = importlib.util.find_spec("apache_beam") is not None
CHUNK = "The DT B-NP\ncat NN I-NP\nsat VBD B-VP\n. . O\n\n"
COLA = "gj04\t1\t\tThe cat sat.\nc-05\t0\t*\tCat the sat.\n"
# Texts whose labels follow from one word.
REVIEWS = [
    (f"a{very} {word} {noun}", label)
    for label, adjectives in (
        ("good", ("moving", "fine", "great")),
        ("bad", ("dull", "poor", "sad")),
    )
    for word in adjectives
    for noun in ("film", "play", "story", "book")
    for very in ("", " very")
]
SST = "sentence\tlabel\n" + "".join(
    f"{text}\t{int(label == 'good')}\n" for text, label in REVIEWS
)
TASK_FILES = {
    "chunk": {"train.txt": CHUNK * 8, "dev.txt": CHUNK * 8},
    "sst": {
        "train.tsv": SST,
        "dev.tsv": SST,
    },
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
    rows = [f"{text},{label}" for text, label in REVIEWS]
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
    write_originals_run(data / "models" / "electra_small")


def write_originals_run(folder):
    """Write the original's recorded weights, with slots and step 50."""
    recorded = open_tf1(str(FIXTURES / "golden" / "ckpt_v200_electra"))
    tensors = {name: recorded.read(name) for name in recorded.specs}
    for name in [name for name in tensors if name != "global_step"]:
        for slot in ("adam_m", "adam_v"):
            tensors[f"{name}/{slot}"] = np.zeros_like(tensors[name])
    tensors["global_step"] = np.asarray(50, np.int64)
    write_tf1(MemoryWeights(tensors), str(folder / "model.ckpt-50"))


def prepare_pretraining(folder, fixture):
    write_corpus(folder)


def prepare_finetuning(folder, fixture):
    write_tasks(folder, "chunk", "cola")


def prepare_own_task(folder, fixture):
    write_reviews(folder)


def prepare_plan(folder, fixture):
    (folder / "data").mkdir()


def prepare_own_language(folder, fixture):
    write_corpus(folder)
    write_corpus(folder, "held_out")


def prepare_distributed(folder, fixture):
    data = shutil.copytree(fixture("data_dir"), folder / "data")
    shutil.copy(FIXTURES / "vocab_200.txt", data / "vocab.txt")


def prepare_study(folder, fixture):
    prepare_distributed(folder, fixture)
    write_tasks(folder, "chunk")
    write_corpus(folder)
    small = folder / "data" / "models" / "small"
    shutil.copytree(fixture("pretrained_folder")(), small)
    (folder / "tiny.json").write_text(json.dumps(TINY_STUDY))
    # The example's task, of which only the dry run needs the files.
    write_tasks(folder, "sst")


def prepare_trained(folder, fixture):
    """Copy a fine-tuned model and write texts for it."""
    shutil.copytree(fixture("trained") / "data", folder / "data")
    (folder / "reviews.tsv").write_bytes(
        b"sentence\tkey\na moving film\tr1\n\nbroken \xff line\tr3\n"
        b"a dull film\tr4\n"
    )
    (folder / "texts.txt").write_text("a moving film\na dull film\n")


def prepare_checkpoints(folder, fixture):
    """Write models of transformers and a run of the original."""
    prepare_trained(folder, fixture)
    (folder / "my-classifier").symlink_to(fixture("trained") / "my-classifier")
    (folder / "original").mkdir()
    shutil.copy(FIXTURES / "vocab_200.txt", folder / "original" / "vocab.txt")
    write_originals_run(folder / "original")


def prepare_keras(folder, fixture):
    data = shutil.copytree(fixture("data_dir"), folder / "data")
    shutil.copy(FIXTURES / "vocab_200.txt", data / "vocab.txt")


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return str(listener.getsockname()[1])


PORTS = [free_port() for _ in range(4)]
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
    # Slow; tests/keras covers what it does.
    "docs/keras.md": Page(
        prepare_keras,
        replaced={
            "num_train_steps=100_000": f"num_train_steps=2, **{TINY_FIT}",
            "steps_per_epoch=1000, epochs=100": "steps_per_epoch=2, epochs=1",
        },
        is_heavy=True,
    ),
    "docs/own_language.md": Page(
        prepare_own_language,
        FLAGS,
        replaced={"8000": "400"},
        skipped={"pip install": PIP, "french/run.sh": DOWNLOAD}
        | ({} if HAS_BEAM else {"--runner=beam": NO_EXTRA}),
    ),
    "docs/checkpoints.md": Page(
        prepare_checkpoints,
        {"run_finetuning.py": FINETUNING},
        replaced={"hf:google/electra-small-generator": "reference"},
    ),
    "docs/predict.md": Page(
        prepare_trained,
        replaced={
            "8501": PORTS[0],
            r"serve (\S+)$": rf"serve \1 --port {PORTS[0]} & "
            f"until curl -fs http://127.0.0.1:{PORTS[0]}/healthz > health; do"
            " sleep 0.1; done",
        },
    ),
    # One of the slowest pages; tests/export covers what it does.
    "docs/export.md": Page(
        prepare_trained, skipped={"docker run": DOCKER}, is_heavy=True
    ),
    "docs/inspect.md": Page(lambda folder, fixture: None),
    "docs/plan.md": Page(
        prepare_plan,
        replaced={
            "--measure 16": "--measure 1 --num_train_steps 1000000000"
            f" --model_hparam_overrides '{json.dumps(TINY)}'"
        },
    ),
    # Slow; tests/end_to_end/test_replicas.py covers what it does.
    "docs/distributed.md": Page(
        prepare_distributed,
        {"run_pretraining.py": [f"--{n}={v}" for n, v in FIT_FLAGS.items()]},
        replaced={
            '"localhost:2222", "localhost:2223"': f'"localhost:{PORTS[1]}",'
            f' "localhost:{PORTS[2]}"',
            '"host0:2222", "host1:2222"': f'"localhost:{PORTS[3]}"',
        },
        skipped={"SBATCH": SLURM},
        is_heavy=True,
    ),
    "docs/study.md": Page(
        prepare_study,
        replaced={
            "^(?=.*--time_budget)": "cp tiny.json generators.json; ",
            "max_seq_length 64": "max_seq_length 16",
            "examples 90": "examples 10",
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

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every command of README and the guides runs, on small data."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.conftest import ROOT

# Sizes for tests: flags that follow the document's own.
TINY = json.dumps(
    {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
)
PRETRAINING = [
    "--num_train_steps=2",
    "--num_warmup_steps=1",
    "--unigram_steps=0",
    "--train_batch_size=4",
    "--eval_batch_size=4",
    "--num_eval_steps=1",
    "--max_seq_length=64",
    "--vocab_size=400",
    f"--model_hparam_overrides={TINY}",
]
FINETUNING = [
    "--num_train_epochs=1",
    "--train_batch_size=4",
    "--eval_batch_size=4",
    "--max_seq_length=32",
    "--num_trials=1",
]
ADDED_FLAGS = {
    "run_pretraining.py": PRETRAINING,
    "run_finetuning.py": FINETUNING,
    "run_glue": FINETUNING,
}
REPLACED = {"8000": "400", "$DATA_DIR": "data", "$CORPUS": "corpus"}
PROGRAMS = ("python3", "python", "electra-tf")
CONLL = "The DT B-NP\ncat NN I-NP\nsat VBD B-VP\n. . O\n\n"
GLUE_TSV = "gj04\t1\t\tThe cat sat.\nc-05\t0\t*\tCat the sat.\n"


def shell_blocks(document):
    """Return the code blocks of a document that are not Python or output."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```", text)
    return [block for language, block in blocks if not language]


def commands_of(document):
    """Return the argument lists of the commands in a document."""
    commands = []
    for block in shell_blocks(document):
        for line in block.replace("\\\n", " ").splitlines():
            for name, value in REPLACED.items():
                line = line.replace(name, value)
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words and words[0] in PROGRAMS:
                commands.append(arguments_of(words))
    return commands


def arguments_of(words):
    """Return a program of this project with its arguments."""
    program, *rest = words
    if rest[:2] == ["-m", "electra_tf"]:
        rest = rest[2:]
        program = "electra-tf"
    if program == "electra-tf":
        return ["electra_tf", *rest, *ADDED_FLAGS.get(rest[0], [])]
    return [*rest, *ADDED_FLAGS.get(rest[0], [])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the data that the documents assume."""
    path = tmp_path_factory.mktemp("user")
    generator = np.random.default_rng(0)
    vocabulary = "the a cat dog house sat ran on mat quickly and saw".split()
    lines = []
    for _ in range(400):
        chosen = generator.choice(vocabulary, size=9)
        lines.append(" ".join(chosen) + " .")
        if generator.random() < 0.1:
            lines.append("")
    (path / "corpus").mkdir()
    (path / "corpus" / "text.txt").write_text("\n".join(lines) + "\n")
    (path / "sentences.txt").write_text("The cat sat .\n")
    tasks = path / "data" / "finetuning_data"
    for task, text, names in (
        ("chunk", CONLL * 8, ("train.txt", "dev.txt")),
        ("cola", GLUE_TSV * 4, ("train.tsv", "dev.tsv")),
    ):
        (tasks / task).mkdir(parents=True)
        for name in names:
            (tasks / task / name).write_text(text)
    return path


def run(commands, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "documents" / "run_commands.py")],
        input=json.dumps(commands),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.slow
def test_the_commands_of_the_readme_run(folder):
    commands = commands_of("README.md")
    assert len(commands) == 12
    own_text, rest = commands[:5], commands[5:]
    output = run(own_text, folder)
    assert "states" in output
    # The part on the original's checkpoints assumes its data folder.
    for name in ("vocab.txt", "pretrain_tfrecords"):
        copy = shutil.copytree if "." not in name else shutil.copy
        copy(folder / "mine" / name, folder / "data" / name)
    output = run(rest, folder)
    assert "AGREE" in output
    assert (folder / "exported" / "chunk" / "1" / "saved_model.pb").exists()


@pytest.mark.slow
def test_the_keras_model_of_the_readme_learns():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"(?ms)^```python\n(.*?)^```", text)
    texts, labels = ["a fine film", "a bad film"] * 4, [1, 0] * 4
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(8)
    names = {"dataset": dataset}
    exec(code, names)
    first = names["model"].evaluate(dataset, verbose=0)
    names["model"].fit(dataset, epochs=3, verbose=0)
    assert names["model"].evaluate(dataset, verbose=0) < first


@pytest.mark.heavy
def test_the_scores_in_the_readme_are_those_of_its_command(
    reference_dir, tmp_path
):
    shown = [
        block for block in shell_blocks("README.md") if "f1:" in block
    ].pop()
    data = tmp_path / "data" / "finetuning_data"
    data.mkdir(parents=True)
    source = reference_dir / "data" / "finetuning_data" / "chunk"
    (data / "chunk").symlink_to(source)
    command = next(
        words
        for words in commands_of("README.md")
        if words[0] == "run_finetuning.py"
    )
    output = run([command[: -len(FINETUNING)]], tmp_path)
    scores = [
        float(re.search(r"f1: ([\d.]+)", text)[1]) for text in (shown, output)
    ]
    # Kernels of other processors round differently.
    assert scores[1] == pytest.approx(scores[0], abs=0.5)

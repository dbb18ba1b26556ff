# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each project continues runs of the other; records are equal."""

import io
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.data.tfrecords import ExampleEncoder, read_records
from electra_tf.pretraining import masking, runner, sampling
from electra_tf.training.console import Console

BATCH, STEPS, HALF = 4, 10, 5
# A mask_prob of 0.3 chooses 4 positions of 16; one is drawn twice.
DRAWS = [3, 1, 6, 3]
OBJECTIVES = {
    "electra": {},
    "electric": {"electra_objective": False, "electric_objective": True},
    "masked_lm": {"electra_objective": False},
    "debug": {"debug": True},
}


@pytest.fixture
def hparams(tmp_path, tiny_finetuning):
    """Return hparams without dropout; half a run reads all records once."""
    path = str(tmp_path / "pretrain_data.tfrecord-0-of-1")
    random = np.random.default_rng(0)
    encoder = ExampleEncoder(16, 101, 102, 200)
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(BATCH * HALF):
            first, second = random.integers(104, 200, [2, 6])
            cut = random.integers(2, 7)
            writer.write(encoder.encode([*first], [*second[:cut]]))
    hparams = {
        **tiny_finetuning,
        "generator_hidden_size": 0.5,
        "max_seq_length": 16,
        "mask_prob": 0.3,
        "learning_rate": 5e-3,
        "train_batch_size": BATCH,
        "num_train_steps": STEPS,
        "num_warmup_steps": 3,
        "save_checkpoints_steps": HALF,
        "iterations_per_loop": 1,
        "pretrain_tfrecords": path,
    }
    del hparams["init_checkpoint"]  # no hparam of the original
    no_dropout = {
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    sizes = hparams["model_hparam_overrides"]
    hparams["model_hparam_overrides"] = sizes | no_dropout
    return hparams


@pytest.fixture
def ours(tmp_path, hparams, monkeypatch):
    """Return a function that trains this project with the original's draws."""

    def positions(candidates, draws, seed):
        return tf.ones([tf.shape(candidates)[0], 1], tf.int32) * [DRAWS]

    monkeypatch.setattr(masking, "_draw_with_replacement", positions)
    monkeypatch.setattr(
        sampling,
        "sample_from_softmax",
        lambda logits, uniform: tf.argmax(logits, -1, tf.int32),
    )

    def run(name, objective):
        config = PretrainingConfig.create(
            name,
            str(tmp_path),
            **hparams,
            **OBJECTIVES[objective],
            shuffle_buffer_size=1,
            mask_replace_prob=1.0,
            lr_read_order="before_increment",
        )
        runner.run(config, Console(io.StringIO()))

    return run


def test_a_run_of_one_project_continues_in_the_other(
    ours, original, hparams, tmp_path, is_noise
):
    models = tmp_path / "models"

    def checkpoint(name, step):
        return str(models / name / f"model.ckpt-{step}")

    def run_original(prefix):
        base = {"data_dir": str(tmp_path), "draws": DRAWS}
        original(*(
            ("pretrain", base | {"name": prefix + o, "hparams": hparams | more})
            for o, more in OBJECTIVES.items()
        ))  # fmt: skip

    run_original("theirs_")
    for objective in OBJECTIVES:
        # This project continues a copy of the original's folder in the middle.
        continued = models / f"theirs_here_{objective}"
        shutil.copytree(models / f"theirs_{objective}", continued)
        latest = f'model_checkpoint_path: "model.ckpt-{HALF}"\n'
        (continued / "checkpoint").write_text(latest)
        ours(continued.name, objective)
        ours(f"ours_{objective}", objective)
        (models / f"ours_there_{objective}").mkdir()
        middle = open_weights(checkpoint(f"ours_{objective}", HALF))
        write_tf1(middle, checkpoint(f"ours_there_{objective}", HALF))
    run_original("ours_there_")
    errors, unequal = {}, []
    for objective in OBJECTIVES:
        for whole, halved in (
            ("theirs", "theirs_here"),
            ("ours", "ours_there"),
        ):
            names = [f"{side}_{objective}" for side in (whole, halved)]
            a, b = (dict(open_weights(checkpoint(n, STEPS))) for n in names)
            if set(a) != set(b) or a["global_step"] != b["global_step"]:
                unequal.append(names)
                continue
            errors[names[1]] = max(
                float(np.abs(a[name] - b[name]).max())
                for name in a
                if not is_noise(name.split("/adam_")[0])
            )
    print(f"weights and slots within: {errors}")
    assert unequal == []
    assert {
        name: error for name, error in errors.items() if error >= 1e-5
    } == {}


PROGRAM = "build_{}pretraining_dataset"


def records_in(folder):
    """Return examples by shard, with their features in a fixed order."""
    return {
        path.name: [
            tf.train.Example.FromString(record).SerializeToString(
                deterministic=True
            )
            for record in read_records(str(path))
        ]
        for path in folder.glob("pretrain_tfrecords/*tfrecord*")
    }


@pytest.mark.parametrize(("kind", "processes"), [("", 3), ("openwebtext_", 2)])
def test_records_equal_the_originals_own(
    original, reference_dir, request, tmp_path, kind, processes
):
    def paths(folder):
        if kind:
            return {"data_dir": str(folder)}
        return {
            "corpus_dir": str(reference_dir / "golden/pretrain_data/corpus"),
            "vocab_file": str(folder / "vocab.txt"),
            "output_dir": str(folder / "pretrain_tfrecords"),
        }

    originals, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (originals, ours):
        archives = reference_dir / "data/openwebtext_like"
        shutil.copytree(archives, folder / "openwebtext")
        shutil.copy(reference_dir / "data/vocab/vocab.txt", folder)
    (originals / "pretrain_tfrecords").mkdir()
    program = PROGRAM.format(kind)
    common = {"max_seq_length": 64, "num_processes": processes, "seed": 11}
    text = {"do_lower_case": True, "strip_accents": True}
    text["blanks_separate_docs"] = True  # no effect on archives
    flags = common | text | paths(originals)
    original(("build", {"program": program, **flags}))
    flags = [f"--{n}={v}" for n, v in (common | paths(ours)).items()]
    script = f"{request.config.rootpath}/{program}.py"
    subprocess.run([sys.executable, script, *flags], check=True)
    actual, expected = records_in(ours), records_in(originals)
    print(f"{program}: {sum(map(len, expected.values()))} examples")
    assert sum(map(len, expected.values())) > 1000 == len(actual)
    assert actual == expected

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: complete saves, strict restores, the best checkpoint."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import types

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import formats, tf2
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.training import checkpointing
from electra_tf.training.best_checkpoint import (
    BestCheckpoint,
    find_best_or_latest,
)
from tests.conftest import ROOT, read_json, refused
from tests.training.conftest import saved_steps

TABLE = "electra/embeddings/word_embeddings"
EXTRA = "generator/encoder/layer_1/bias"


class Tables(tf.Module):
    def __init__(self, rows, extra=False):
        super().__init__()
        self.table = tf.Variable(tf.ones([rows, 4]), name=TABLE)
        if extra:
            self.extra = tf.Variable([1.0], name=EXTRA)


class Slots(tf.Module):
    kind = "original"

    def __init__(self, model):
        super().__init__()
        self.targets = [model.table]
        zeros = tf.zeros_like(model.table)
        self.m, self.v = (
            {TABLE: tf.Variable(zeros, name=f"{TABLE}/{slot}")}
            for slot in ("adam_m", "adam_v")
        )


def checkpoints(directory, model, step=3, **settings):
    settings = {"position": {}, "keep": 5, **settings}
    return checkpointing.Checkpoints(
        str(directory),
        model=model,
        optimizer=Slots(model),
        step=tf.Variable(step, dtype=tf.int64, name="global_step"),
        **settings,
    )


@pytest.mark.parametrize(
    ("saved", "restored", "message"),
    [
        ((6,), (7,), rf"{TABLE}: .* \[6, 4\] in the checkpoint, but \[7, 4\]"),
        ((6,), (6, True), EXTRA),
        ((6, True), (6,), "this model does not contain this variable"),
    ],
)
def test_variables_that_differ_are_named(tmp_path, saved, restored, message):
    path = checkpoints(tmp_path, Tables(*saved)).save()
    refused(message, checkpoints(tmp_path, Tables(*restored)).restore, path)


@pytest.mark.parametrize(
    ("keep", "keep_every", "expected_steps"),
    [(2, 4, [4, 8, 9, 10]), (0, 0, [*range(1, 11)])],
)
def test_newest_and_milestones_are_kept(
    tmp_path, keep, keep_every, expected_steps
):
    settings = {"keep": keep, "keep_every": keep_every}
    for step in range(1, 11):
        checkpoints(tmp_path, Tables(2), step, **settings).save()
    assert saved_steps(tmp_path) == expected_steps
    state = tf.train.get_checkpoint_state(str(tmp_path))
    named = [p.rpartition("-")[2] for p in state.all_model_checkpoint_paths]
    assert [int(number) for number in named] == expected_steps
    assert not list(tmp_path.glob("*.tmp"))


def test_a_copied_original_is_never_removed(tmp_path):
    original = MemoryWeights({TABLE: np.zeros([2, 4], "f4")})
    write_tf1(original, str(tmp_path / "model.ckpt-1"))
    for step in (2, 3):
        checkpoints(tmp_path, Tables(2), step, keep=1).save()
    assert saved_steps(tmp_path) == [1, 3]


def test_a_missing_latest_checkpoint_is_an_error(tmp_path):
    for step in (1, 2):
        checkpoints(tmp_path, Tables(2), step).save()
    (tmp_path / "model.ckpt-2.index").unlink()
    with pytest.raises(UserError, match=r"names model.ckpt-2.*model.ckpt-1\."):
        _ = checkpoints(tmp_path, Tables(2)).latest


def test_only_the_best_checkpoint_is_kept_without_a_position(tmp_path):
    for step in (1, 2):
        checkpoints(tmp_path, Tables(2), step).save_best(str(tmp_path))
    assert saved_steps(tmp_path) == [2]
    position = {"iterator": tf.Variable(1.0)}
    reader = checkpoints(tmp_path, Tables(2), 0, position=position)
    assert reader.restore(reader.latest) is False
    assert int(reader.step.numpy()) == 2


@pytest.mark.parametrize(
    ("write", "message"),
    [(tf2.write_native, "no Adam slots"), (write_tf1, "0 Adam.slots")],
)
def test_weights_without_slots_cannot_be_continued(tmp_path, write, message):
    weights = MemoryWeights({TABLE: np.zeros([2, 4], "f4")})
    write(weights, str(tmp_path / "model.ckpt-3"))
    reader = checkpoints(tmp_path, Tables(2))
    with pytest.raises(UserError, match=rf"{message}(.|\n)*--init_checkpoint"):
        reader.restore(reader.latest)


# Saves as fast as it can; all values of a checkpoint equal its step.
SAVING = """
import sys
import tensorflow as tf
from electra_tf.training.checkpointing import (Checkpoints)

class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.zeros([500_000]), name="w")

class Slots:
    kind, m, v = "original", {}, {}

model, step = Model(), tf.Variable(0, dtype=tf.int64)
checkpoints = Checkpoints(sys.argv[1], model=model, optimizer=Slots(),
    step=step, position={"again": tf.Variable(tf.zeros([10]))}, keep=1)
while True:
    step.assign_add(1)
    model.w.assign(tf.fill([500_000], tf.cast(step, tf.float32)))
    checkpoints.save()
    print(int(step), flush=True)
"""


@pytest.fixture(scope="module")
def killed_saves(tmp_path_factory):
    """Return a folder in which processes that save are killed."""
    return tmp_path_factory.mktemp("killed_saves")


# The second process saves to a folder with remains of the first kill.
@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [3, 11])
def test_a_kill_during_a_save_leaves_the_latest_readable(
    killed_saves, milliseconds
):
    child = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(killed_saves)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    steps = [int(child.stdout.readline()) for _ in range(5)]
    time.sleep(milliseconds / 1000)
    child.kill()
    steps += map(int, child.stdout.read().split())
    child.wait()
    latest = tf2.open_native(str(killed_saves))
    assert latest.global_step in (steps[-1], steps[-1] + 1)
    assert (latest.read("w") == latest.global_step).all()


@pytest.mark.parametrize("keep", [0, 40])
def test_a_truncated_latest_checkpoint_names_the_previous_checkpoint(
    tmp_path, keep
):
    checkpoints(tmp_path, Tables(6), 1).save()
    path = checkpoints(tmp_path, Tables(6), 2).save()
    data = pathlib.Path(path + ".data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"model\.ckpt-2 .*truncated.*ckpt-1\."):
        checkpoints(tmp_path, Tables(6)).restore(path)


def best_checkpoint(path, metric, *scored_on):
    writer = types.SimpleNamespace(save_best=lambda path: f"{path}/model.ckpt")
    (path / "best").mkdir(exist_ok=True)
    settings = (metric, writer, lambda path: None, *scored_on)
    return BestCheckpoint(str(path), *settings)


@pytest.mark.parametrize(
    ("metric", "values", "best_steps"),
    [
        ("disc_loss", [0.5, 0.6, 0.4, 0.4], [0, 2]),
        ("disc_auc_real_tokens", [0.5, 0.4, 0.6, 0.6], [0, 2]),
        ("loss", [float("nan"), 1.0, float("nan"), 0.5], [1, 3]),
    ],
)
@pytest.mark.parametrize("continued", [False, True])
def test_the_best_checkpoint_is_kept(
    tmp_path, metric, values, best_steps, continued
):
    best, steps = best_checkpoint(tmp_path, metric), []
    for step, value in enumerate(values):
        if best.update(step, {metric: value}):
            steps.append(step)
        if continued:
            best = best_checkpoint(tmp_path, metric)
    assert steps == best_steps
    state = read_json(tmp_path / "best" / "best.json")
    step = best_steps[-1]
    assert state == {"metric": metric, "step": step, "value": values[step]}


@pytest.mark.parametrize(
    ("before", "now", "is_other"),
    [
        (["disc_loss"], ["mlm_loss"], True),
        (["mlm_loss"], ["mlm_loss", "a"], False),
        (["mlm_loss", "a"], ["mlm_loss", "a"], False),
        (["mlm_loss", "a"], ["mlm_loss", "b"], True),
    ],
    ids=["metric", "no_data", "equal_data", "data"],
)
def test_a_best_checkpoint_by_a_different_metric_or_data_is_replaced(
    tmp_path, before, now, is_other
):
    best_checkpoint(tmp_path, *before).update(8, {before[0]: 8.5})
    best = best_checkpoint(tmp_path, *now)
    assert best.chosen_otherwise == is_other
    assert bool(best.update(9, {"mlm_loss": 9.5})) == is_other


@pytest.mark.parametrize(
    ("before", "is_other"),
    [
        ({"mask_prob": 0.15, "disc_weight": 50.0}, False),
        ({"mask_prob": 0.15, "disc_weight": 500.0}, True),
        ({"mask_prob": 0.25, "disc_weight": 50.0}, True),
        ({"mask_prob": 0.15}, False),  # an earlier version
        (None, False),  # an earlier version
    ],
)
def test_a_best_checkpoint_by_other_settings_is_replaced(
    tmp_path, before, is_other
):
    best_checkpoint(tmp_path, "loss", "", before).update(8, {"loss": 8.5})
    now = {"mask_prob": 0.15, "disc_weight": 50.0}
    best = best_checkpoint(tmp_path, "loss", "", now)
    assert best.chosen_otherwise == is_other
    assert bool(best.update(9, {"loss": 9.5})) == is_other


@pytest.mark.parametrize("starts_over", [False, True])
def test_the_best_checkpoint_of_an_abandoned_run_is_replaced(
    tmp_path, starts_over
):
    best_checkpoint(tmp_path, "loss").update(8, {"loss": 8.5})
    best = best_checkpoint(tmp_path, "loss", "", None, starts_over)
    assert best.chosen_otherwise == starts_over
    assert bool(best.update(2, {"loss": 9.5})) == starts_over


def test_damaged_files_are_user_errors(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json: not valid JSON"):
        checkpointing.read_config(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("objective", ["electra"], "expected text"),
        ("pretrain_tfrecords", 5, "expected text"),
        ("pretrain_tfrecords", None, "expected text"),
        ("max_seq_length", "x", "expected a whole number"),
        ("model_hparam_overrides", True, "expected a JSON object"),
    ],
)
def test_settings_of_a_run_with_another_type_are_refused(
    tmp_path, tiny_config, name, value, message
):
    path = tmp_path / "config.json"
    settings = json.loads(tiny_config().to_json())
    path.write_text(json.dumps({**settings, name: value}))
    message = rf"^{path}: hparam {name}: {message}.*\nRestore {path}"
    refused(message, checkpointing.read_config, str(tmp_path))


def test_settings_of_a_run_are_read_with_their_types(tmp_path, tiny_config):
    path, text = tmp_path / "config.json", tiny_config().to_json()
    path.write_text(text)
    settings = json.loads(text)
    assert checkpointing.read_config(str(tmp_path)) == settings
    path.write_text(json.dumps({**settings, "max_seq_length": "16"}))
    assert checkpointing.read_config(str(tmp_path)) == settings


def test_settings_of_other_programs_are_read_as_they_are(tmp_path):
    text = '{"max_seq_length": "x", "objective": []}'
    (tmp_path / "config.json").write_text(text)
    assert checkpointing.read_config(str(tmp_path)) == json.loads(text)


@pytest.mark.parametrize("value", [5, True, ["vocab.txt"]])
def test_a_vocabulary_that_is_no_path_is_refused(tmp_path, value):
    path = checkpoints(tmp_path, Tables(2)).save()
    settings = {"model_size": "small", "vocab_file": value}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    message = r"config\.json: vocab_file is .*; expected the path"
    refused(message, formats.open_weights, path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object"),
        ("{}", "metric is missing"),
        ('{"metric": [], "value": 1}', r"metric is '\[\]'"),
        ('{"metric": "loss", "step": 1}', "value is missing; expected a numb"),
        ('{"metric": "loss", "value": "1"}', "value is '1'"),
        ('{"metric": "loss", "value": null}', "value is 'None'"),
        ('{"metric": "loss", "value": NaN}', "value is 'nan'"),
        (
            '{"metric": "loss", "value": 1, "settings": 2}',
            "settings is '2'; expected an object",
        ),
    ],
)
def test_a_damaged_best_checkpoint_is_refused(tmp_path, text, message):
    path = tmp_path / "best" / "best.json"
    path.parent.mkdir()
    path.write_text(text)
    message = rf"^{re.escape(str(path))}: (?s:.*){message}"
    message += r"(?s:.*)best\.json is corrupt. Remove"
    refused(message, best_checkpoint, tmp_path, "loss")


@pytest.fixture
def run_with_best(tmp_path):
    """Return a run's folder with the best of step 3, the latest of step 5."""
    model = Tables(2)
    checkpoints(tmp_path, model, step=5).save()
    saver = checkpoints(tmp_path, model, step=3)
    saver.save_best(str(tmp_path / "best"))
    assert find_best_or_latest(str(tmp_path)).endswith("best/model.ckpt-3")
    return tmp_path


def _remove(name):
    return lambda best: (best / name).unlink()


def _write(name, text):
    return lambda best: (best / name).write_text(text)


@pytest.mark.parametrize(
    "damage",
    [
        _remove("checkpoint"),
        _remove("model.ckpt-3.index"),
        _write("checkpoint", 'model_checkpoint_path: "model.ckpt-5"\n'),
        _write("checkpoint", 'model_checkpoint_path: "model.ckpt-2"\n'),
        _write("checkpoint", ""),
        _write("checkpoint", "model_checkpoint_path"),
        lambda best: [path.unlink() for path in best.iterdir()],
    ],
)
def test_the_latest_checkpoint_never_stands_for_a_damaged_best_one(
    run_with_best, damage
):
    damage(run_with_best / "best")
    refused(
        r"best.*(incomplete|corrupt)",
        find_best_or_latest,
        str(run_with_best),
    )


def test_without_best_the_latest_checkpoint_is_the_model(run_with_best):
    shutil.rmtree(run_with_best / "best")
    assert find_best_or_latest(str(run_with_best)).endswith("model.ckpt-5")


def test_only_remains_of_a_killed_save_are_removed(tmp_path):
    (tmp_path / "model.ckpt-5_temp").mkdir()
    (tmp_path / "model.ckpt-5_temp" / "part-00000").touch()
    (tmp_path / "checkpoint.tmp0123abcd").touch()
    names = ["checkpoint", "model.ckpt-5.index", "notes_temp", "my.tmp"]
    for name in names:
        (tmp_path / name).touch()
    checkpointing.sweep(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)

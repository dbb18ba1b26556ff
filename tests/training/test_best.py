# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from configure.errors import UserError
from electra_tf.training.checkpointing import BestCheckpoint


class Recorder:
    def __init__(self):
        self.saved = 0

    def save_best(self, directory):
        self.saved += 1
        return f"{directory}/model.ckpt"


def keeper(path, metric):
    (path / "best").mkdir(exist_ok=True)
    recorder = Recorder()
    return BestCheckpoint(str(path), metric, recorder), recorder


def test_losses_are_better_when_lower(tmp_path):
    best, recorder = keeper(tmp_path, "disc_loss")
    told = [
        bool(best.update(i, {"disc_loss": value}))
        for i, value in enumerate([0.5, 0.6, 0.4, 0.4])
    ]
    assert told == [True, False, True, False]
    assert recorder.saved == 2


def test_other_metrics_are_better_when_higher(tmp_path):
    best, _ = keeper(tmp_path, "disc_auc_real_tokens")
    assert best.update(1, {"disc_auc_real_tokens": 0.5})
    assert not best.update(2, {"disc_auc_real_tokens": 0.4})
    assert best.update(3, {"disc_auc_real_tokens": 0.6})
    kept = json.loads((tmp_path / "best" / "best.json").read_text())
    assert kept == {"metric": "disc_auc_real_tokens", "step": 3, "value": 0.6}


def test_a_continued_run_remembers_what_was_best(tmp_path):
    keeper(tmp_path, "loss")[0].update(1, {"loss": 1.0})
    assert not keeper(tmp_path, "loss")[0].update(2, {"loss": 1.5})
    assert keeper(tmp_path, "loss")[0].update(2, {"loss": 0.5})


def test_another_metric_starts_anew(tmp_path):
    keeper(tmp_path, "loss")[0].update(1, {"loss": 0.1})
    assert keeper(tmp_path, "disc_loss")[0].update(2, {"disc_loss": 9.0})


def test_a_nan_is_never_the_best(tmp_path):
    best, _ = keeper(tmp_path, "loss")
    assert not best.update(1, {"loss": float("nan")})
    assert best.update(2, {"loss": 1.0})
    assert not best.update(3, {"loss": float("nan")})


def test_a_damaged_file_is_a_user_error(tmp_path):
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "best.json").write_text("{")
    with pytest.raises(UserError, match=r"best\.json is damaged"):
        keeper(tmp_path, "loss")

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
from electra_tf.training.summaries import Panel, draw_curves

PANELS = [
    Panel("Loss", train="loss", evaluation="loss"),
    Panel("AUC", evaluation="auc", baselines=(("rank", "rarity"),), chance=0.5),
    Panel("Never logged", train="missing"),
]


def test_a_picture_is_drawn_whatever_there_is(tmp_path):
    rows = [{"step": s, "loss": 10 / s} for s in range(1, 60)]
    evaluations = [{"step": 20, "loss": 1.0, "auc": None, "rank": 0.6}]
    for train_rows, eval_rows in (
        (rows, evaluations),
        (rows[:1], []),
        ([], []),
    ):
        path = draw_curves(
            str(tmp_path), PANELS, train_rows, eval_rows, "a run"
        )
        with open(path, "rb") as file:
            assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    assert len(list(tmp_path.iterdir())) == 1

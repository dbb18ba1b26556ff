# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json
import pickle

import pytest

from configure.errors import UserError
from electra_tf.training.summaries import write_results


def test_a_file_that_cannot_be_written_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    inside_a_file = str(tmp_path / "file" / "r.txt")
    with pytest.raises(
        UserError, match="cannot be written.*checkpoints are safe"
    ):
        write_results(
            {},
            txt=inside_a_file,
            pkl=inside_a_file,
            json_path=inside_a_file,
            config={},
            step=1,
        )


def test_three_files_tell_the_same(tmp_path):
    metrics = {"b_loss": 0.5, "a_accuracy": 0.25}
    write_results(
        metrics,
        txt=str(tmp_path / "results" / "r.txt"),
        pkl=str(tmp_path / "results" / "r.pkl"),
        json_path=str(tmp_path / "results" / "r.json"),
        config={"seed": 1},
        step=7,
    )
    text = (tmp_path / "results" / "r.txt").read_text()
    assert text == "a_accuracy = 0.25\nb_loss = 0.5\n"
    read = pickle.loads((tmp_path / "results" / "r.pkl").read_bytes())
    assert read == {**metrics, "global_step": 7}
    record = json.loads((tmp_path / "results" / "r.json").read_text())
    assert record["metrics"] == metrics
    assert record["step"] == 7 and record["config"] == {"seed": 1}
    assert record["time"].endswith("+00:00")
    assert len(list((tmp_path / "results").iterdir())) == 3

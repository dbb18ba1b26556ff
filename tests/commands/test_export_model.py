# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command writes what was asked for, or says in a line why not."""

import json
import os

import pytest

from configure.errors import UserError
from electra_tf.commands import export_model


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tiny_finetuning, save_run, pretrained_folder):
    """A fine-tuned and a pre-trained model's folder."""
    from configure.finetuning import FinetuningConfig
    from electra_tf.finetuning.model import FinetuningModel
    from electra_tf.finetuning.registry import get_tasks

    place = tmp_path_factory.mktemp("models")
    config = FinetuningConfig.create(
        "tiny",
        str(place),
        task_names=["cola", "sst"],
        model_dir=str(place / "m_1"),
        max_seq_length=32,
        **tiny_finetuning,
    )
    model = FinetuningModel(config, get_tasks(config))
    return save_run(str(place / "m_1"), config, model), pretrained_folder()


def _run(*words):
    export_model.main(export_model.parse_flags(["export_model", *words]))


def test_a_task_of_a_finetuned_model_is_exported_and_checked(
    folders, tmp_path, capsys
):
    finetuned, _ = folders
    output = str(tmp_path / "served")
    _run("--model", finetuned, "--output_dir", output, "--task=sst")
    said = capsys.readouterr().out
    assert f"classification (sst) -> {output}/1" in said
    assert "serve_text(text) -> label, label_id, logits" in said
    assert sorted(os.listdir(f"{output}/1")) == [
        "MODEL_CARD.md",
        "assets",
        "assets.extra",
        "fingerprint.pb",
        "saved_model.pb",
        "variables",
    ]
    with open(f"{output}/1/assets.extra/config.json") as file:
        assert json.load(file)["task"] == "sst"
    _run("--check", f"{output}/1")
    assert "says what is measured" in capsys.readouterr().out
    with pytest.raises(UserError, match="1 is there already"):
        _run(
            *("--model", finetuned, "--output_dir", output),
            *("--task=sst", "--version=1"),
        )


def test_mistakes_are_told_and_nothing_is_written(folders, tmp_path):
    finetuned, pretrained = folders
    empty = tmp_path / "empty"
    empty.mkdir()
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    output = tmp_path / "served"
    for model, words, message in (
        (finetuned, "", "several tasks; choose one of its tasks: cola, sst"),
        (finetuned, "--task=mnli", "has no mnli"),
        (finetuned, "--head=fill_mask", "expected task or encoder"),
        (pretrained, "", "--head is missing, but .* expected encoder or"),
        (pretrained, "--head=electric", "is not an Electric model"),
        (pretrained, "--head=encoder --task=sst", "--task is for the head"),
        (empty, "--head=encoder", "empty"),
        (tmp_path / "no", "--head=encoder", "no"),
        (pretrained, "--head=encoder --vocab_file=x", "x: no such file"),
        (pretrained, "--head=encoder --max_seq_length=513", "512 positions"),
        (pretrained, "--head=encoder --max_seq_length=2", "5 or more"),
        (pretrained, "--head=fill_mask --top_k=0", "1 or more"),
    ):
        where = ("--model", str(model), "--output_dir", str(output))
        with pytest.raises(UserError, match=message):
            _run(*where, *words.split())
        assert not output.exists(), words
    with pytest.raises(UserError, match=r"holds other files \(mine.txt\)"):
        _run("--model", pretrained, "--output_dir", str(full))

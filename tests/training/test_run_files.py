# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run's directory is deleted only if all of its files are the run's."""

import json

import pytest

from electra_tf.checkpoints.formats import complete_folder
from electra_tf.training.run_files import RunFiles, remove_run
from tests.conftest import refused

FILES = RunFiles("line")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]


@pytest.fixture
def completed_folder(tmp_path):
    """Return a folder whose vocabulary has the settings of transformers."""
    source, folder = tmp_path / "source", tmp_path / "run"
    source.mkdir()
    folder.mkdir()
    (source / "vocab.txt").write_text("".join(f"{t}\n" for t in TOKENS))
    settings = {"do_lower_case": True, "tokenize_chinese_chars": False}
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    complete_folder(str(folder), {}, str(source / "vocab.txt"))
    return folder


def test_the_settings_of_a_tokenizer_are_files_of_the_run(completed_folder):
    assert (completed_folder / "tokenizer_config.json").exists()
    assert remove_run(str(completed_folder), FILES)
    assert not completed_folder.exists()


def test_a_file_that_no_run_writes_stays(completed_folder):
    (completed_folder / "thesis.txt").write_text("mine")
    refused(
        "no line run writes .thesis.txt.",
        remove_run,
        str(completed_folder),
        FILES,
    )
    assert (completed_folder / "tokenizer_config.json").exists()

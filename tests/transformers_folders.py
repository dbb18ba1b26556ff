# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of models in the format of transformers."""

import json

import pytest

from tests.conftest import read_json


@pytest.fixture(scope="session")
def transformers_folder(tmp_path_factory, finetuned_folder):
    """Return a factory of folders in the format of transformers.

    `transformers_folder("reviews")` returns the run's folder and one with the
    same weights, without any file or setting of this project.
    """
    made = {}

    def make(task, fresh=False, **hparams):
        from electra_tf.commands import convert_checkpoint

        defaults = {
            "classification_head_layers": 2,
            "joint_prediction": False,
            "answerable_classifier": False,
            "fix_tagging_casing": True,
        }
        key = (task, repr(hparams))
        if key not in made or fresh:
            run = finetuned_folder(task, **(defaults | hparams))
            folder = tmp_path_factory.mktemp(f"hf-{task}")
            arguments = [run, str(folder), "--output_format=huggingface"]
            args = convert_checkpoint.parse_flags(["convert", *arguments])
            convert_checkpoint.main(args)
            for name in ("electra_config", "digests", "conversion"):
                (folder / f"{name}.json").unlink()
            config = read_json(folder / "config.json")
            del config["electra_tf"]
            (folder / "config.json").write_text(json.dumps(config))
            if fresh:
                return run, folder
            made[key] = run, folder
        return made[key]

    return make

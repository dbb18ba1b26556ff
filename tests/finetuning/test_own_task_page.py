# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What docs/own_task.md shows is what the code accepts."""

import json
import pathlib
import re

import pytest

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import registry, schema

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "own_task.md"
BLOCKS = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS)
def test_a_shown_description_is_accepted(text, tmp_path):
    path = tmp_path / "task.json"
    path.write_text(text)
    spec = registry.read_task_config(str(path))
    config = FinetuningConfig.create(
        "m", "d", task_names=spec.name, **spec.hparams
    )
    assert config.task_names == [json.loads(text)["name"]]


def test_every_type_is_shown():
    shown = {json.loads(text).get("type", "classification") for text in BLOCKS}
    assert shown == set(schema.TYPES)

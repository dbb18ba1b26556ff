# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores recorded from the original."""

import json

import pytest


@pytest.fixture(scope="session")
def recorded_scores(golden_dir):
    path = golden_dir / "finetune_features" / "qa_metrics.json"
    return json.loads(path.read_text())["classification_and_tagging"]

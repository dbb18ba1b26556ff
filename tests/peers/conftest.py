# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The original google-research/electra, where there is one that runs."""

import json
import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).with_name("original_side.py")


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """Has the original do jobs, all in one process: (name, arguments)."""
    folder = pathlib.Path(os.environ.get("ELECTRA_TF_ORIGINAL", "-"))
    python = os.environ.get("ELECTRA_TF_ORIGINAL_PYTHON")
    if not (folder / "electra").is_dir():
        pytest.skip(
            "no original beside us (set ELECTRA_TF_ORIGINAL to a folder with"
            " electra/, a copy that runs, and env/bin/python for it)"
        )

    def run(*jobs):
        path = tmp_path_factory.mktemp("jobs") / "jobs.json"
        path.write_text(json.dumps(jobs))
        done = subprocess.run(
            [
                python or str(folder / "env/bin/python"),
                *(str(SCRIPT), str(folder / "electra"), str(path)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]

    return run

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The original google-research/electra and transformers, if installed."""

import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def run_jobs(tmp_path_factory):
    """Return a function that runs (name, arguments) jobs in one process."""

    def run(command, jobs):
        path = tmp_path_factory.mktemp("jobs") / "jobs.json"
        path.write_text(json.dumps(jobs))
        arguments = [*map(str, command), str(path)]
        ended = subprocess.run(arguments, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr[-4000:]

    return run


@pytest.fixture(scope="session")
def transformers(run_jobs):
    """Return a function that runs jobs of transformers_side.py."""
    python = os.environ.get("ELECTRA_TF_TRANSFORMERS_PYTHON")
    if not python:
        pytest.skip(
            "set ELECTRA_TF_TRANSFORMERS_PYTHON to a Python with transformers"
        )
    command = [python, HERE / "transformers_side.py"]
    return lambda *jobs: run_jobs(command, jobs)


@pytest.fixture(scope="session")
def original(run_jobs):
    """Return a function that runs jobs of original_side.py."""
    folder = pathlib.Path(os.environ.get("ELECTRA_TF_ORIGINAL", "-"))
    python = os.environ.get("ELECTRA_TF_ORIGINAL_PYTHON")
    if not (folder / "electra").is_dir():
        pytest.skip(
            "no copy of the original (set ELECTRA_TF_ORIGINAL to a folder with"
            " electra/, a copy that runs, and env/bin/python for it)"
        )
    command = [python or folder / "env/bin/python", HERE / "original_side.py"]
    command.append(folder / "electra")
    return lambda *jobs: run_jobs(command, jobs)

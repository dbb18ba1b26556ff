# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a start must not wait for."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# As a front door starts: through `run_program`, TensorFlow imported late.
_PROGRAM = """
import sys
from configure import flags
def main(parsed):
    import electra_tf.{room}.runner
    print(sorted(set({names!r}) & set(sys.modules)))
flags.run_program(main, flags.FlagParser())
"""


@pytest.mark.parametrize("room", ["pretraining", "finetuning"])
def test_a_front_door_imports_nothing_it_needs_only_at_the_end(room):
    names = ("keras", "matplotlib", "sklearn", "scipy.stats", "tensorflow_text")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(room=room, names=names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a start must not wait for."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# As a front door starts: through `run_program`, TensorFlow imported late.
_PROGRAM = """
import sys
from configure import flags
def main(parsed):
    import electra_tf.finetuning.runner, electra_tf.pretraining.runner
    print(sorted({names!r} & sys.modules.keys()))
flags.run_program(main, flags.FlagParser())
"""


def test_a_front_door_imports_nothing_it_needs_only_at_the_end():
    names = {"keras", "matplotlib", "sklearn", "scipy.stats", "tensorflow_text"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(names=names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr

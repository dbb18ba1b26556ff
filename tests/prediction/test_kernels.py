# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whose kernels TensorFlow is asked for, by what is imported before it."""

import os
import platform
import subprocess
import sys

import pytest

VARIABLE = "TF_ENABLE_ONEDNN_OPTS"


def variable_after(code, **environment):
    """The variable's value in a fresh process after some imports."""
    given = {k: v for k, v in os.environ.items() if k != VARIABLE}
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}\nimport os\nprint(os.getenv('{VARIABLE}'))",
        ],
        env={**given, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.strip()


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"),
    reason="oneDNN is asked for on x86 only",
)
def test_training_asks_for_onednn():
    assert variable_after("import electra_tf.training") == "1"


@pytest.mark.parametrize("name", ["prediction", "inspection", "serving"])
def test_packages_that_answer_leave_the_choice_to_tensorflow(name):
    assert variable_after(f"import electra_tf.{name}") == "None"


@pytest.mark.parametrize("wish", ["0", "1"])
def test_what_the_user_says_stands(wish):
    code = "import electra_tf.training, electra_tf.prediction"
    assert variable_after(code, **{VARIABLE: wish}) == wish


def test_nothing_is_taken_back_after_tensorflow_has_read_it():
    code = "import sys, electra_tf\nsys.modules['tensorflow'] = sys\n"
    before = variable_after("import electra_tf")
    assert variable_after(f"{code}import electra_tf.prediction") == before

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whose kernels TensorFlow is asked for, by what is imported before it."""

import os
import platform

import pytest

VARIABLE = "TF_ENABLE_ONEDNN_OPTS"


ANSWERING = "import electra_tf.prediction, electra_tf.inspection"
ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.mark.parametrize(
    ("code", "wish", "wanted"),
    [
        ("import electra_tf.training", None, "1" if ON_X86 else None),
        # Packages that answer leave the choice to TensorFlow.
        (f"{ANSWERING}, electra_tf.serving", None, None),
        # What the user says stands.
        (f"import electra_tf.training\n{ANSWERING}", "0", "0"),
        (f"import electra_tf.training\n{ANSWERING}", "1", "1"),
        # Nothing is taken back once TensorFlow has read it.
        (
            "import electra_tf, sys\n"
            f"sys.modules['tensorflow'] = sys\n{ANSWERING}",
            None,
            "1" if ON_X86 else None,
        ),
    ],
)
def test_imports_decide_on_onednn_or_the_user(run_python, code, wish, wanted):
    given = {k: v for k, v in os.environ.items() if k != VARIABLE}
    given |= {VARIABLE: wish} if wish else {}
    ending = f"\nimport os\nprint(os.getenv('{VARIABLE}'))"
    shown = run_python("-c", code + ending, env=given)
    assert shown.stdout.strip() == str(wanted)

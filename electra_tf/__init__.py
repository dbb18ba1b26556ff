# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""ELECTRA in TensorFlow: pre-train text encoders as discriminators.

Importing this package does not import TensorFlow. It asks for TensorFlow's
oneDNN kernels, which TensorFlow itself takes on newer x86 processors only, and
for its pooled memory on CPUs; set TF_ENABLE_ONEDNN_OPTS=0 or
TF_CPU_ALLOCATOR_USE_BFC=false to do without. The packages that answer
(prediction, inspection, serving) do without when they are imported before
TensorFlow, but for the commands that read files of texts.
"""

import os
import platform
import sys

__version__ = "1.0.0"

# TensorFlow reads these when it is imported. docs/performance.md has what they
# bring.
_asked_for_onednn = (
    platform.machine().lower() in ("x86_64", "amd64")
    and "TF_ENABLE_ONEDNN_OPTS" not in os.environ
)
if _asked_for_onednn:
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
# Else every tensor of a step is taken from the system and given back: page
# faults, and memory in pieces. The limit (in MB) only lifts a default of 64 GB.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", "4000000")


def use_onednn(wanted: bool) -> None:
    """Chooses oneDNN's kernels or not, where neither user nor TensorFlow has.

    With one text or a few, oneDNN loses more by bringing weights into its order
    at every call than it gains.
    """
    if _asked_for_onednn and "tensorflow" not in sys.modules:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(wanted))

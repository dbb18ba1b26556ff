# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""ELECTRA in TensorFlow: pre-train text encoders as discriminators.

Importing this package does not import TensorFlow. The import sets environment
variables of TensorFlow for oneDNN kernels, which are the default only on newer
x86 processors, and for pooled memory on CPUs. Set TF_ENABLE_ONEDNN_OPTS=0 or
TF_CPU_ALLOCATOR_USE_BFC=false to disable them. The packages for single texts
(prediction, inspection, serving) disable oneDNN if they are imported before
TensorFlow, except in commands that read files of texts.
"""

import os
import platform
import sys

__version__ = "1.1.0"

# TensorFlow reads these variables when it is imported. docs/performance.md
# reports the speed with and without them.
_enables_onednn = (
    platform.machine().lower() in ("x86_64", "amd64")
    and "TF_ENABLE_ONEDNN_OPTS" not in os.environ
)
if _enables_onednn:
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
# Without a pool, the system allocates and frees every tensor of a step, which
# causes page faults and fragments memory. The limit (in MB) replaces a default
# of 64 GB.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", "4000000")


def use_onednn(is_enabled: bool) -> None:
    """Enable or disable oneDNN unless a user did so or TensorFlow is loaded.

    With few texts per call, oneDNN is slower: it converts the layout of the
    weights at every call.
    """
    if _enables_onednn and "tensorflow" not in sys.modules:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1" if is_enabled else "0"

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""ELECTRA in TensorFlow: pre-train text encoders as discriminators.

The rooms, from the ground up. Imports only go down the stairs.

  0  configure      hyperparameters as data (a package of its own)
  1  text           characters -> token ids
  2  data           token ids -> examples -> batches
  3  modeling       tensors -> tensors: embeddings, encoder, heads
  3  optimization   gradients -> updates
  4  checkpoints    weights on disk
  4  analysis       counting, not training
  5  training       one loop for every objective
  6  pretraining    the paper: mask, generate, corrupt, judge
  6  evaluation     scores of predictions, the official ones among them
  7  finetuning     tasks, trials, statistics
  8  prediction     texts -> answers, with a trained model
  8  inspection     where a discriminator sees replaced tokens
  9  export         SavedModels that take raw text, LiteRT, ONNX
 10  serving        a small server of them
     commands       side doors: `python -m electra_tf.commands.<name>`

Importing this package does not import TensorFlow. It asks for TensorFlow's
oneDNN kernels, which TensorFlow itself takes on newer x86 processors only, and
for its pooled memory on CPUs; set TF_ENABLE_ONEDNN_OPTS=0 or
TF_CPU_ALLOCATOR_USE_BFC=false to do without. The rooms that answer (prediction,
inspection, serving) take the request for oneDNN back when they are imported
before TensorFlow.
"""

import os
import platform
import sys

__version__ = "0.1.0"

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


def leave_kernels_to_tensorflow() -> None:
    """Takes back the request for oneDNN, where it was ours and is not granted.

    With one text or a few, oneDNN loses more by bringing weights into its order
    at every call than it gains.
    """
    global _asked_for_onednn
    if _asked_for_onednn and "tensorflow" not in sys.modules:
        os.environ.pop("TF_ENABLE_ONEDNN_OPTS", None)
        _asked_for_onednn = False

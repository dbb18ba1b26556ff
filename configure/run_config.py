# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The type of a config of either training program."""

from typing import TypeAlias

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig

RunConfig: TypeAlias = PretrainingConfig | FinetuningConfig

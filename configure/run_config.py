# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Type of the configs of both training programs."""

from typing import TypeAlias

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig

RunConfig: TypeAlias = PretrainingConfig | FinetuningConfig

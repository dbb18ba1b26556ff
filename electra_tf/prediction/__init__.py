# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prediction with trained models: labels, tags, answers and vectors."""

from electra_tf import use_onednn

use_onednn(False)

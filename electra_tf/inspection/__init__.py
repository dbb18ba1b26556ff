# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inspection of texts with a pre-trained model, token by token."""

from electra_tf import use_onednn

use_onednn(False)

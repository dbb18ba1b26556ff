# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper (section 2, Figure 2): masking, losses, model, metrics, runner."""

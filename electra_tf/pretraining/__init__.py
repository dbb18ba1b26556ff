# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper, in reading order (section 2, Figure 2).

Reading order: masking, losses, model, metrics, runner; loading, scoring.
"""

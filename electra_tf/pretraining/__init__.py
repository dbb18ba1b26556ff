# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-training (paper section 2, Figure 2): networks, losses, runs."""

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters, FLOPs and memory of a model, computed from its config."""

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a model takes, counted from its config: parameters, FLOPs, memory."""

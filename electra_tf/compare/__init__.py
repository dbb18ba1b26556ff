# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparison of a checkpoint with another checkpoint or a recording."""

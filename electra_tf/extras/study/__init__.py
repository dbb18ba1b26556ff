# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Studies: a file of arms, seeds and tasks, run in pieces, into one table."""

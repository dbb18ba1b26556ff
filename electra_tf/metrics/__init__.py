# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a model's outputs to figures and answers; nothing writes a file."""

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A module for each `python -m electra_tf COMMAND`: flags in, one call out."""

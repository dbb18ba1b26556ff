# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of predictions."""

from tests.transformers_folders import transformers_folder  # noqa: F401

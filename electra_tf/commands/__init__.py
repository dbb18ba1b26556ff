# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands: a module for each `python -m electra_tf COMMAND`."""

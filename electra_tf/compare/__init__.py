# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far two checkpoints, or one and a recording, are apart."""

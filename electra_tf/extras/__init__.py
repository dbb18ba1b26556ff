# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Extras: packages that go beyond the original and that no other one needs."""

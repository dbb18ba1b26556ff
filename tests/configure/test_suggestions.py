# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Unknown names are reported with the most similar known ones."""

from configure.suggestions import check_names
from tests.conftest import refused


def test_unknown_names_are_refused_with_the_nearest_names():
    known = ["seed", "speed", "threads", "mask_prob"]
    message = "Unknown hparam sede. Nearest names: seed, speed, threads"
    refused(message, check_names, ["seed", "sede"], known)

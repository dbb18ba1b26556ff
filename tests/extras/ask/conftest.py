# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The index of a small folder of texts."""

import pytest


@pytest.fixture
def opened(text_folder):
    """Return a function that opens an index, and returns its reports, too."""
    pytest.importorskip("bm25s", reason="no extra ask")
    pytest.importorskip("Stemmer", reason="no extra ask")
    from electra_tf.extras.ask.index import open_index

    def call(corpus=text_folder, language="english"):
        lines, path = [], str(text_folder.parent / "stored.index")
        return open_index(str(corpus), path, language, lines.append), lines

    return call

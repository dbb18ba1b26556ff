# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plots as PNG files."""

import io
from typing import Any


def encode_png(figure: Any) -> bytes:
    """Return the PNG file of a matplotlib figure."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plots as PNG images."""

import io
from typing import Any


def encode_png(figure: Any) -> bytes:
    """Return a matplotlib figure as the bytes of a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()

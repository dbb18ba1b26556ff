# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The setuptools build backend, limited to supported versions of Python.

pip reads `requires-python` of a folder only after the download of setuptools,
and may then compile packages that have no wheel for a newer Python.
"""

import sys

if not (3, 10) <= sys.version_info[:2] <= (3, 12):
    raise SystemExit(
        "error: electra_tf needs Python 3.10, 3.11 or 3.12; found"
        f" {sys.version.split()[0]}. Make the virtual environment with one of"
        " these versions."
    )

from setuptools.build_meta import *  # noqa: F403

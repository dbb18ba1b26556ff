# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The build backend of setuptools, for supported versions of Python only.

pip reads `requires-python` of a folder only after it has downloaded setuptools,
and may then compile packages that have no wheel for a newer Python.
"""

import sys

if not (3, 10) <= sys.version_info[:2] <= (3, 12):
    raise SystemExit(
        "error: electra_tf needs Python 3.10, 3.11 or 3.12; this is"
        f" {sys.version.split()[0]}. Make the virtual environment with one of"
        " these."
    )

from setuptools.build_meta import *  # noqa: F403

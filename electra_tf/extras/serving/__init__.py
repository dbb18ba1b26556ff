# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""An exported model behind HTTP, on this machine, with a page for people."""

from electra_tf import use_onednn

use_onednn(False)

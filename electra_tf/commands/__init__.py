# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: side doors (roof), run as `python -m electra_tf.commands.<name>`.

In: command-line flags. Out: one call into a room below, and what it prints.
May import anything; nobody imports the roof.
"""

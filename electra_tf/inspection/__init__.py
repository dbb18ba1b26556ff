# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asking a pre-trained model about texts.

`token_inspection`: what is masked, proposed, sampled and found, drawn by
`tables`; `fill_mask`: tokens for [MASK]; `text_scores`: how likely a text is.
"""

from electra_tf import leave_kernels_to_tensorflow

leave_kernels_to_tensorflow()

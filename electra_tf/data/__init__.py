# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text becomes record files, and record files become batches.

TensorFlow is imported only by `input_pipeline` and `feature_spec`, so that
worker processes start in an instant.
"""

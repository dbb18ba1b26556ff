# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How encoders compute, as opposed to what: what is kept, in which dtype."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class ComputePolicy:
    """How an encoder's blocks are computed; the weights are float32 always."""

    # Of the blocks' matrix products and of what is between them. Layer norms,
    # softmaxes, embeddings and heads are float32 always.
    dtype: str = "float32"
    # Activations inside blocks are computed again for the gradient instead of
    # kept from the forward pass: only each block's input is.
    recompute: bool = False

    @classmethod
    def of(cls, config: Any, recompute: bool) -> "ComputePolicy":
        """Reads the hparam `mixed_precision`."""
        dtype = {"": "float32", "bf16": "bfloat16", "fp16": "float16"}
        return cls(dtype[config.mixed_precision], recompute)

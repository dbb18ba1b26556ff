# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes and settings of a transformer encoder."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from configure.run_config import RunConfig

_SIZES = {
    "small": {"hidden_size": 256, "num_hidden_layers": 12},
    "base": {"hidden_size": 768, "num_hidden_layers": 12},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24},
}


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """Hyperparameters of an encoder; field names are the original's.

    Source: google-research/electra, model/modeling.py, BertConfig.
    """

    vocab_size: int  # rows of the token embedding table
    hidden_size: int = 768  # width of all block outputs
    num_hidden_layers: int = 12  # number of transformer blocks
    num_attention_heads: int = 12  # must divide hidden_size
    intermediate_size: int = 3072  # width of the feed-forward layer
    # Activation of feed-forward layers and heads: gelu (erf form), relu, tanh,
    # linear, or gelu_new (tanh form), which models of other libraries use.
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1  # rate after embeddings and sublayers
    attention_probs_dropout_prob: float = 0.1  # rate of attention probabilities
    max_position_embeddings: int = 512  # maximum length of a sequence
    type_vocab_size: int = 2  # number of segments
    # Standard deviation of the initial values (truncated normal).
    initializer_range: float = 0.02
    # Constant that layer norms add to the variance. The default is the
    # original's value; PyTorch's default is 1e-5.
    layer_norm_eps: float = 1e-12

    def __post_init__(self) -> None:
        if self.num_attention_heads < 1:
            raise UserError(
                f"num_attention_heads is {self.num_attention_heads}; expected"
                " at least 1. Change num_attention_heads in"
                " model_hparam_overrides."
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(
                    f"{name} is {getattr(self, name)}; expected a rate of at"
                    f" least 0 and below 1. Change {name} in"
                    " model_hparam_overrides."
                )
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"The hidden size ({self.hidden_size}) is not a multiple of the"
                f" number of attention heads ({self.num_attention_heads})."
                " Change num_attention_heads in model_hparam_overrides."
            )

    @property
    def size_per_head(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def of(cls, config: RunConfig) -> "EncoderConfig":
        """Return the sizes of a run's full-size encoder."""
        overrides = config.model_hparam_overrides
        return cls.for_size(
            config.model_size, config.vocab_size, overrides, config.debug
        )

    @classmethod
    def for_size(
        cls,
        model_size: str,
        vocab_size: int,
        overrides: Mapping[str, object] | None = None,
        debug: bool = False,
    ) -> "EncoderConfig":
        """Return the sizes of a named model, changed by overrides.

        The number of heads (one per 64 hidden units) and the feed-forward width
        (4 times hidden) are derived from the hidden size unless the overrides
        contain them.

        Source: google-research/electra, util/training_utils.py,
        get_bert_config, and the debug block of run_pretraining.py.
        """
        overrides = dict(overrides or {})
        values: dict[str, Any] = {"vocab_size": vocab_size}
        values |= {**_SIZES[model_size], **overrides}
        values["num_attention_heads"] = max(1, values["hidden_size"] // 64)
        values["intermediate_size"] = 4 * values["hidden_size"]
        values.update(overrides)
        if debug:
            values.update(num_hidden_layers=3, hidden_size=144)
            values.update(intermediate_size=576, num_attention_heads=4)
        return cls(**values)

    def scaled(
        self, hidden_fraction: float, layer_fraction: float
    ) -> "EncoderConfig":
        """Return the sizes of a generator, fractions of this encoder's sizes.

        Source: google-research/electra, run_pretraining.py,
        get_generator_config (Python's round: half to even).
        """
        hidden_size = round(self.hidden_size * hidden_fraction)
        num_layers = round(self.num_hidden_layers * layer_fraction)
        num_heads = max(1, hidden_size // 64)
        if not hidden_size or not num_layers or hidden_size % num_heads:
            raise UserError(
                f"generator_hidden_size {hidden_fraction} and generator_layers"
                f" {layer_fraction} result in a generator with {num_layers}"
                f" layers, hidden size {hidden_size} and {num_heads} attention"
                " heads; expected at least one layer, and a positive hidden"
                " size that is a multiple of the number of heads. Change these"
                " hparams."
            )
        return dataclasses.replace(
            self,
            hidden_size=hidden_size,
            num_hidden_layers=num_layers,
            intermediate_size=4 * hidden_size,
            num_attention_heads=num_heads,
        )

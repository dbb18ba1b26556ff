# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the published models took to train, as their authors counted it.

The original counts otherwise than `flops`: a backward pass is as much as its
forward pass, and looking an embedding up is a product with a one-hot matrix
over the vocabulary (40% of the small model's count). `paper_train_flops`
counts a run in that way, so that it can stand beside the others.
"""

import dataclasses
from typing import Any

from configure.pretraining import GeneratorKind, generator_kind
from electra_tf.analysis.flops import pretraining_step_flops
from electra_tf.analysis.parameters import encoder_sizes, generator_sizes

# A petaflop a second, for a day.
PETAFLOP_DAY = 1e15 * 24 * 60 * 60


@dataclasses.dataclass(frozen=True)
class PublishedModel:
    """A model of the paper's tables.

    Attributes:
      name: as in the paper.
      train_flops: operations of its pre-training.
    """

    name: str
    train_flops: float

    @property
    def petaflop_days(self) -> float:
        """The same in petaflop/s-days."""
        return self.train_flops / PETAFLOP_DAY


# Source: what google-research/electra, flops_computation.py, prints; rounded
# to four digits. Notes to it:
# - all but ELECTRA-Small and BERT-Small are counted at 512 wordpieces a
#   sequence throughout, BERT too, which saw mostly 128;
# - BERT-Large is given BERT-Base's batch and steps;
# - RoBERTa, ALBERT and T5 differ a little from the transformer counted.
PUBLISHED_MODELS = (
    PublishedModel("ELECTRA-Small", 1.294e18),
    PublishedModel("BERT-Small (the paper's)", 1.419e18),
    PublishedModel("ELMo", 3.411e18),
    PublishedModel("GPT", 3.969e19),
    PublishedModel("ELECTRA-Base", 6.425e19),
    PublishedModel("BERT-Base", 6.428e19),
    PublishedModel("BERT-Large", 1.917e20),
    PublishedModel("ELECTRA-400K", 7.118e20),
    PublishedModel("ELECTRA-Large (1.75M)", 3.114e21),
    PublishedModel("RoBERTa", 3.187e21),
    PublishedModel("XLNet", 3.857e21),
    PublishedModel("ALBERT", 3.114e22),
    PublishedModel("T5-11B", 4.582e22),
)


def paper_train_flops(config: Any) -> float:
    """Counts a whole run in the way of the paper's tables.

    Source: google-research/electra, flops_computation.py,
    get_electra_train_flops.
    """
    forward = pretraining_step_flops(config, training=False).total
    per_step = 2 * (forward + _one_hot_lookups(config))
    return float(per_step * config.num_train_steps)


def _one_hot_lookups(config: Any) -> int:
    """Operations of a forward pass's lookups if they were products."""
    sizes = encoder_sizes(config)
    length = config.max_seq_length
    rows = config.train_batch_size * length
    width = config.embedding_size or sizes.hidden_size
    kind = generator_kind(config)
    widths = []
    if config.electra_objective or config.electric_objective:
        widths.append(width)
    if kind is not GeneratorKind.UNIFORM:
        own = width
        if config.untied_generator_embeddings:
            own = generator_sizes(config, sizes).hidden_size
        widths += [own] * (2 if kind is GeneratorKind.TWO_TOWER else 1)
    return sum(2 * rows * w * (sizes.vocab_size + length + 2) for w in widths)

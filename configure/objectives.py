# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The objectives of pre-training as data: names, switches, heads.

`electra_tf.pretraining.objectives` holds their losses, and
`electra_tf.plan.flops` the operations of their heads.
"""

import dataclasses
import enum
from collections.abc import Mapping

_DETECTS = {"electra_objective": True, "electric_objective": False}
_PREDICTS = {"electra_objective": False, "electric_objective": False}


class Positions(enum.Enum):
    """The positions that a head of the second network learns from."""

    NONE = "none"  # the network has no such head
    CHOSEN = "chosen"  # those that masking chose
    ALL = "all"  # all real tokens


@dataclasses.dataclass(frozen=True)
class Objective:
    """One objective, without its numbers."""

    title: str  # its name in the papers
    switches: Mapping[str, bool]  # the original's hparams that agree with it
    detects: Positions  # where the discriminator's loss is taken
    predicts: Positions  # where the original tokens are predicted
    has_two_networks: bool = True

    @property
    def has_discriminator_head(self) -> bool:
        """Return whether a head classifies tokens as replaced or original.

        All-Tokens MLM has the head without a loss: it copies a token with the
        probability that the token is original.
        """
        detects = self.detects is not Positions.NONE
        return detects or self.predicts is Positions.ALL


# In the order in which the original's switches choose one.
OBJECTIVES = {
    "electric": Objective(
        "Electric",
        {"electric_objective": True},
        detects=Positions.ALL,
        predicts=Positions.NONE,
    ),
    "electra": Objective(
        "ELECTRA",
        _DETECTS,
        detects=Positions.ALL,
        predicts=Positions.NONE,
    ),
    "mlm": Objective(
        "masked LM",
        _PREDICTS,
        detects=Positions.NONE,
        predicts=Positions.NONE,
        has_two_networks=False,
    ),
    "electra_15": Objective(
        "ELECTRA 15%",
        _DETECTS,
        detects=Positions.CHOSEN,
        predicts=Positions.NONE,
    ),
    "replace_mlm": Objective(
        "Replace MLM",
        _PREDICTS,
        detects=Positions.NONE,
        predicts=Positions.CHOSEN,
    ),
    "all_tokens_mlm": Objective(
        "All-Tokens MLM",
        _PREDICTS,
        detects=Positions.NONE,
        predicts=Positions.ALL,
    ),
}

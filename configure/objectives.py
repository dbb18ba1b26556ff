# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-training objectives as data: names, switches and heads.

`electra_tf.pretraining.objectives` defines their losses, and
`electra_tf.plan.flops` counts the operations of their heads.
"""

import dataclasses
import enum
from collections.abc import Mapping

_DETECTS = {"electra_objective": True, "electric_objective": False}
_PREDICTS = {"electra_objective": False, "electric_objective": False}


class Positions(enum.Enum):
    """Positions at which a head of the second network has a loss."""

    NONE = "none"  # the network has no such head
    CHOSEN = "chosen"  # the positions chosen by masking
    ALL = "all"  # all tokens except padding


@dataclasses.dataclass(frozen=True)
class Objective:
    """Description of one objective."""

    title: str  # name in the papers
    # Hparams of the original that select the objective.
    switches: Mapping[str, bool]
    detects: Positions  # positions of the discriminator's loss
    predicts: Positions  # positions at which the original tokens are predicted
    has_two_networks: bool = True

    @property
    def has_discriminator_head(self) -> bool:
        """Return whether a head classifies tokens as replaced or original.

        In All-Tokens MLM the head has no loss, but predicts the probability
        with which the model copies a token.
        """
        detects = self.detects is not Positions.NONE
        return detects or self.predicts is Positions.ALL


# The order is that of the original's switches: the first match is chosen.
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

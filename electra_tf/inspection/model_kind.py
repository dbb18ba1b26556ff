# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What kind of model it is, in words, and what then does not apply."""

from configure.pretraining import GeneratorKind
from electra_tf.pretraining.loading import PretrainedModel


def samples_uniformly(pretrained: PretrainedModel) -> bool:
    """Whether replacements are drawn from all words alike.

    A discriminator that was saved alone looks the same; so it counts only
    where somebody said so.
    """
    return (
        pretrained.model.kind is GeneratorKind.UNIFORM
        and pretrained.model.discriminates
        and "uniform_generator" in pretrained.stated
    )


def kind_name(pretrained: PretrainedModel) -> str:
    """Names the kind, such as "ELECTRA, small generator"."""
    model = pretrained.model
    if not model.discriminates:
        return "masked LM"
    name = "Electric" if pretrained.is_electric else "ELECTRA"
    if pretrained.lacks_discriminator():
        return f"{name}'s generator alone"
    if samples_uniformly(pretrained):
        return f"{name}, uniform generator"
    if pretrained.lacks_generator():
        return f"{name}'s discriminator alone"
    generators = {
        GeneratorKind.SMALL: "small generator",
        GeneratorKind.FULL: "one network for both parts",
        GeneratorKind.TWO_TOWER: "two-tower generator",
    }
    return f"{name}, {generators[model.kind]}"


def describe(pretrained: PretrainedModel) -> list[str]:
    """Says what does not apply to a model, and what is different."""
    model = pretrained.model
    notes = [f"Not stated anywhere: {text}." for text in pretrained.assumptions]
    if not model.discriminates:
        notes.append(
            "A masked LM proposes and nothing more: no token is sampled and"
            " there is no discriminator to judge any."
        )
    elif pretrained.lacks_discriminator():
        notes.append(
            "The checkpoint holds no discriminator: nothing is judged, so"
            " nothing is sampled for it."
        )
    if samples_uniformly(pretrained):
        notes.append(
            "A uniform generator proposes nothing in particular: every"
            " word of the vocabulary has the same probability."
        )
    elif model.discriminates and pretrained.lacks_generator():
        notes.append(
            "The checkpoint holds no generator: nothing is masked, and the"
            " text is judged as it is."
        )
    if model.kind is GeneratorKind.TWO_TOWER:
        notes.append(
            "The two-tower generator sees no [MASK]: it predicts each token"
            " from all the others, which it reads as they are."
        )
    if pretrained.is_electric:
        notes.append(
            "Electric counts every sampled token as replaced, even one equal"
            " to the original; log P is minus the discriminator's raw logit."
        )
        if pretrained.lacks_generator():
            notes.append(
                "Electric's probability of a replacement takes the"
                " generator's; without it only log P is shown."
            )
    return notes

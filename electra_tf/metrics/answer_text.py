# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From the wordpieces of an answer back to the words of its passage."""

from collections.abc import Sequence

from electra_tf.text.tokenization import BasicTokenizer


def join_wordpieces(tokens: Sequence[str]) -> str:
    """Puts wordpieces together to words with single spaces between them."""
    text = " ".join(tokens).replace(" ##", "").replace("##", "")
    return " ".join(text.split())


def project_to_passage(
    answer: str, passage: str, tokenizer: BasicTokenizer
) -> str:
    """Finds the part of a passage that a tokenized answer stands for.

    Tokenizing lower-cases, splits punctuation off and may drop accents. The
    passage is tokenized in the same way, the answer is looked for in the
    result, and its first and last character are carried back by counting
    characters that are not spaces.

    Returns:
      The part, such as "Steve Smith"; the whole passage where tokenizing
      changed the number of characters or the answer cannot be found.

    Source: google-research/electra, finetune/qa/qa_metrics.py, get_final_text.
    """
    tokenized = " ".join(tokenizer.tokenize(passage))
    start = tokenized.find(answer)
    if start < 0:
        return passage
    end = start + len(answer) - 1
    passage_places = [i for i, c in enumerate(passage) if c != " "]
    places = [i for i, c in enumerate(tokenized) if c != " "]
    if len(passage_places) != len(places):
        return passage
    numbers = {place: number for number, place in enumerate(places)}
    if start not in numbers or end not in numbers:
        return passage
    first = passage_places[numbers[start]]
    return passage[first : passage_places[numbers[end]] + 1]

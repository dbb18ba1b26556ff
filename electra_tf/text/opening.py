# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opening of the tokenizer for a WordPiece or byte-level BPE vocabulary."""

from electra_tf.text.bpe import BpeTokenizer
from electra_tf.text.tokenization import (
    FullTokenizer,
    Tokenizer,
    complete_casing,
)
from electra_tf.text.vocabulary import is_bpe


def open_tokenizer(
    vocab_file: str,
    do_lower_case: bool | None = None,
    strip_accents: bool | None = None,
) -> Tokenizer:
    """Return the tokenizer of a vocab.txt or of a byte-level BPE file.

    Args:
      vocab_file: path of a vocab.txt, or of a BPE tokenizer.json.
      do_lower_case: whether text is lower-cased; None: the value in the file
        next to the vocabulary, otherwise true.
      strip_accents: whether accents are deleted; None: as for do_lower_case.
    """
    do_lower_case, strip_accents = complete_casing(
        vocab_file, do_lower_case, strip_accents
    )
    if is_bpe(vocab_file):
        return BpeTokenizer(vocab_file, do_lower_case, strip_accents)
    return FullTokenizer(vocab_file, do_lower_case, strip_accents)

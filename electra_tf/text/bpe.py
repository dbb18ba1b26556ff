# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer for vocabularies of byte-level BPE.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners"
  (2019), section 2.2; for ELECTRA: Mercier, "Efficient transfer learning for
  NLP with ELECTRA" (2021), section 3.2.
"""

from typing import Any

from configure.errors import UserError, missing_extra
from configure.formatting import join_names
from electra_tf.files.reading import read_text
from electra_tf.text.tokenization import Tokenizer
from electra_tf.text.vocabulary import read_bpe_vocab
from electra_tf.text.wordpiece import as_text


class BpeTokenizer(Tokenizer):
    """Tokenizer that splits text with the library `tokenizers`.

    Special tokens that occur in a text are split like other text.
    """

    def __init__(
        self, path: str, do_lower_case: bool = True, strip_accents: bool = True
    ):
        """Load a tokenizer.json; reject a casing other than the default."""
        if not (do_lower_case and strip_accents):
            raise UserError(
                f"{path} defines the normalization of text, so do_lower_case"
                " and strip_accents must have their defaults. Remove"
                " --no-lower-case and --no-strip-accents."
            )
        self.vocab = read_bpe_vocab(path)
        self.inv_vocab = {number: token for token, number in self.vocab.items()}
        self._path = path
        try:
            import tokenizers
        except ImportError as error:
            need = f"{path}: requires the package tokenizers, which"
            raise missing_extra(need, "bpe", error) from None
        try:
            self._model = tokenizers.Tokenizer.from_str(read_text(path))
        except Exception as error:  # The library raises `Exception`.
            raise UserError(
                f"{path}: the library tokenizers cannot read this file:"
                f" {error}. Save the tokenizer again."
            ) from error
        self._model.no_truncation()
        self._model.no_padding()
        self._model.encode_special_tokens = True
        every_byte = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        missing = sorted(set(every_byte) - set(self.vocab))
        if missing and self._model.model.unk_token is None:
            raise UserError(
                f"{path}: {len(missing)} of the 256 bytes have no token"
                f" ({join_names(missing)}), so texts would lose these bytes."
                " Train the tokenizer with"
                " initial_alphabet=ByteLevel.alphabet()."
            )

    def encode(self, text: str | bytes) -> list[int]:
        """Split a text into tokens and return their ids."""
        # UTF-8 cannot encode the lone surrogates that JSON may contain.
        text = as_text(text).encode("utf-8", "ignore").decode()
        return self._model.encode(text, add_special_tokens=False).ids

    def __reduce__(self) -> tuple[Any, ...]:
        return BpeTokenizer, (self._path,)

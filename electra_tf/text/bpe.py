# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE: the vocabulary of a tokenizer.json, and its tokenizer.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners"
  (2019), section 2.2; for ELECTRA: Mercier, "Efficient transfer learning for
  NLP with ELECTRA" (2021), section 3.2.
"""

from collections.abc import Mapping
from typing import Any

from configure.errors import UserError, missing_extra
from configure.formatting import join_names
from electra_tf.files.digests import check_digest
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_text
from electra_tf.text.tokenization import SPECIAL_TOKENS, Tokenizer, as_text

# What such files may call the special tokens instead.
_OTHERS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
_OTHER_NAMES = dict(zip(SPECIAL_TOKENS, _OTHERS, strict=True))


def read_vocab(path: str) -> dict[str, int]:
    """Tokens and ids of a file, special tokens under WordPiece's names."""
    check_digest(path)
    content = read_json(path)
    model = content.get("model") or {}
    before = content.get("pre_tokenizer") or {}
    parts = [before, *before.get("pretokenizers", ())]
    found = [model.get("type"), *(part.get("type") for part in parts)]
    if found[0] != "BPE" or "ByteLevel" not in found:
        raise UserError(
            f"{path}: model.type is {found[0]!r}, pre_tokenizer.type"
            f" {join_names(found[1:])}; expected 'BPE' and ByteLevel. Of a"
            " WordPiece vocabulary give the vocab.txt"
        )
    if dropout := model.get("dropout"):
        raise UserError(
            f"{path}: model.dropout is {dropout!r}, so that a text gets other"
            " ids each time it is encoded; expected null. Set it to null:"
            " BPE-dropout is for training a tokenizer's model, and no setting"
            " of this project."
        )
    return stored_vocab(content, path, _OTHER_NAMES)


def stored_vocab(
    content: Mapping[str, Any], path: str, others: Mapping[str, str]
) -> dict[str, int]:
    """Tokens and ids, in their order, of what a tokenizer.json holds.

    `others`: tokens that must be there, and what they may be called instead.
    """
    vocab = dict((content.get("model") or {}).get("vocab") or {})
    added = content.get("added_tokens") or ()
    vocab |= {token["content"]: token["id"] for token in added}
    for name, other in others.items():
        if name not in vocab and other in vocab:
            vocab[name] = vocab.pop(other)
    if missing := [n for n in others if n not in vocab]:
        told = [f"{name} (or {others[name]})" for name in missing]
        raise UserError(
            f"{path} ({len(vocab)} tokens) lacks {', '.join(told)}; train it"
            " with these special tokens"
        )
    tokens = sorted(vocab, key=vocab.__getitem__)
    if [vocab[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(f"{path}: the vocabulary's ids have gaps.")
    return {token: number for number, token in enumerate(tokens)}


class BpeTokenizer(Tokenizer):
    """Splits text as the library `tokenizers` does with the same file.

    Special tokens that are spelt out in a text stay text, as everywhere here.
    """

    def __init__(
        self, path: str, do_lower_case: bool = True, strip_accents: bool = True
    ):
        """Loads a file; the other two, WordPiece's, must stay as they are."""
        if not (do_lower_case and strip_accents):
            raise UserError(
                f"{path} says itself how text is normalized; leave"
                " do_lower_case and strip_accents out (--no-lower-case,"
                " --no-strip-accents)"
            )
        self.vocab = read_vocab(path)
        self.inv_vocab = {number: token for token, number in self.vocab.items()}
        self._path = path
        try:
            import tokenizers
        except ImportError as error:
            what = f"{path}: needs the package tokenizers, which"
            raise missing_extra(what, "bpe", error) from None
        try:
            self._model = tokenizers.Tokenizer.from_str(read_text(path))
        except Exception as error:  # It has no class of its own.
            raise UserError(f"{path}: tokenizers says: {error}") from error
        self._model.no_truncation()
        self._model.no_padding()
        self._model.encode_special_tokens = True
        every_byte = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        lost = sorted(set(every_byte) - set(self.vocab))
        if lost and self._model.model.unk_token is None:
            raise UserError(
                f"{path} lacks {len(lost)} of the 256 bytes"
                f" ({join_names(lost)}),"
                " so that text would lose them; train it with"
                " initial_alphabet=ByteLevel.alphabet()"
            )

    def encode(self, text: str | bytes) -> list[int]:
        # Lone surrogates, which JSON may hold, are no text.
        text = as_text(text).encode("utf-8", "ignore").decode()
        return self._model.encode(text, add_special_tokens=False).ids

    def __reduce__(self) -> tuple[Any, ...]:
        return BpeTokenizer, (self._path,)

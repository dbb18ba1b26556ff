# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer settings that a WordPiece vocabulary does not contain.

In transformers, the files next to a vocabulary contain these settings. A model
folder of this project has a `tokenizer_config.json` with the same keys. This
file also contains the casing, which the hparams `do_lower_case` and
`strip_accents` override.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

TOKENIZER_CONFIG = "tokenizer_config.json"
# Key of this project's values in files that other programs read.
MARK = "electra_tf"
# Names of the two sets of character classes: that of google-research/electra,
# and that of Hugging Face's library.
ORIGINAL = "original"
LIBRARY = "tokenizers"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token that is searched for before a text is split into words."""

    content: str
    id: int
    special: bool = False
    normalized: bool = False  # whether normalized text is searched
    # Whether the token includes the white space before it (lstrip) or after it
    # (rstrip); the two settings do not affect ids.
    lstrip: bool = False
    rstrip: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the token in the format of tokenizer.json."""
        fields = dataclasses.asdict(self)
        return fields | {"single_word": False}


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """Settings of a tokenizer; the defaults are the original's."""

    characters: str = ORIGINAL  # ORIGINAL or LIBRARY
    do_lower_case: bool | None = None  # None: not specified
    strip_accents: bool | None = None  # None: same as do_lower_case
    clean_text: bool = True  # whether control characters are deleted
    tokenize_chinese_chars: bool = True  # whether each ideograph is a word
    max_word_length: int = 200  # characters; longer words become [UNK]
    added_tokens: tuple[AddedToken, ...] = ()
    # Words that are never split if they occur between white space; the
    # vocabulary contains all words of this list.
    never_split: tuple[str, ...] = ()

    @property
    def hparams(self) -> dict[str, bool]:
        """Casing as hparams, or {} for an unspecified casing."""
        if self.do_lower_case is None:
            return {}
        hparams = {"do_lower_case": self.do_lower_case}
        if self.do_lower_case and self.strip_accents is False:
            hparams["strip_accents"] = False
        return hparams

    @property
    def strips_cased(self) -> bool:
        """Return whether accents are stripped from cased text.

        The original strips accents only from lower-cased text.
        """
        cased = self.do_lower_case is False and self.characters == LIBRARY
        return cased and bool(self.strip_accents)

    @property
    def beyond_casing(self) -> dict[str, Any]:
        """Settings that differ from the original's, except the casing."""
        settings = dataclasses.asdict(self)
        plain = dataclasses.asdict(TokenizerSettings())
        for name in ("do_lower_case", "strip_accents"):
            del settings[name], plain[name]
        if self.strips_cased:
            settings["strips_cased"] = True
        return {
            name: value
            for name, value in settings.items()
            if value != plain.get(name)
        }

    @property
    def distinctive(self) -> dict[str, Any]:
        """Settings that differ from those of plain transformers folders.

        A plain copy of a vocabulary may replace the vocabulary of a model. With
        a plain copy, special tokens in texts are split like other text, and
        characters have the original's classes.
        """
        usual = ("characters", "max_word_length", "added_tokens")
        settings = {
            name: value
            for name, value in self.beyond_casing.items()
            if name not in usual
        }
        tokens = [
            dataclasses.asdict(token)
            for token in self.added_tokens
            if token.content not in _SPECIAL
        ]
        return settings | ({"added_tokens": tokens} if tokens else {})

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return dataclasses.asdict(self) | {
            "added_tokens": [dataclasses.asdict(t) for t in self.added_tokens],
            "never_split": list(self.never_split),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "TokenizerSettings":
        """Create settings from the JSON values of `as_json`."""
        values = dict(fields)
        values["added_tokens"] = tuple(
            AddedToken(**token) for token in fields["added_tokens"]
        )
        values["never_split"] = tuple(fields["never_split"])
        return cls(**values)

    def strips(self, do_lower_case: bool, strip_accents: bool) -> bool:
        """Return whether a tokenizer with these hparams strips accents."""
        return strip_accents if do_lower_case else self.strips_cased

    def with_tokens(self, vocab: dict[str, int]) -> dict[str, int]:
        """Return a vocabulary that also contains the added tokens."""
        return vocab | {token.content: token.id for token in self.added_tokens}


def digest_of(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256 of settings; "" if the mapping is empty."""
    if not settings:
        return ""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def settings_text(settings: TokenizerSettings) -> str | None:
    """Return the contents of `tokenizer_config.json` in a model folder.

    The result is None for the original's settings, which need no such file.
    """
    if not settings.beyond_casing:
        return None
    fields = dataclasses.asdict(settings)
    characters, tokens = fields.pop("characters"), fields.pop("added_tokens")
    fields["max_input_chars_per_word"] = fields.pop("max_word_length")
    fields["added_tokens_decoder"] = {
        str(token.pop("id")): token for token in tokens
    }
    contents = fields | {MARK: {"version": 1, "characters": characters}}
    return json.dumps(contents, indent=2, ensure_ascii=False) + "\n"

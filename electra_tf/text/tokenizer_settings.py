# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of a WordPiece tokenizer that its vocabulary does not show.

A vocabulary that comes from transformers has them in the files beside it, and
a model's folder of this project in a `tokenizer_config.json` of the same keys.
Casing stands there, too, but follows the hparams `do_lower_case` and
`strip_accents`.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically

TOKENIZER_CONFIG = "tokenizer_config.json"
# What this project adds to files that other programs read.
MARK = "electra_tf"
ORIGINAL = "original"  # classes of characters of google-research/electra
LIBRARY = "tokenizers"  # those of Hugging Face's library
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token that is found in the text, before it is cut into words."""

    content: str
    id: int
    special: bool = False
    # Searched for in normalized text (lower-cased, without accents, ...).
    normalized: bool = False
    # Whether white space before or after belongs to it: no id depends on that.
    lstrip: bool = False
    rstrip: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the token as tokenizer.json holds it."""
        fields = dataclasses.asdict(self)
        return fields | {"single_word": False}


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """Settings of a tokenizer; the defaults are the original's tokenizer."""

    characters: str = ORIGINAL  # or LIBRARY
    do_lower_case: bool | None = None  # None: not stated
    strip_accents: bool | None = None  # None: as lower-casing says
    clean_text: bool = True  # drop control characters
    tokenize_chinese_chars: bool = True  # ideographs are words
    max_word_length: int = 200  # characters; longer words are unknown
    added_tokens: tuple[AddedToken, ...] = ()
    # Words between white space that stay as they are; all of the vocabulary.
    never_split: tuple[str, ...] = ()

    @property
    def hparams(self) -> dict[str, bool]:
        """The hparams that the casing stands for; empty if it is not stated."""
        if self.do_lower_case is None:
            return {}
        hparams = {"do_lower_case": self.do_lower_case}
        if self.do_lower_case and self.strip_accents is False:
            hparams["strip_accents"] = False
        return hparams

    @property
    def strips_cased(self) -> bool:
        """Whether accents go though upper case stays; the original cannot."""
        cased = self.do_lower_case is False and self.characters == LIBRARY
        return cased and bool(self.strip_accents)

    @property
    def beyond_casing(self) -> dict[str, Any]:
        """The settings that are not the original's, without the casing."""
        settings = dataclasses.asdict(self)
        plain = dataclasses.asdict(TokenizerSettings())
        for name in ("do_lower_case", "strip_accents"):
            del settings[name], plain[name]
        if self.strips_cased:
            settings["strips_cased"] = True
        return {n: v for n, v in settings.items() if v != plain.get(n)}

    @property
    def distinctive(self) -> dict[str, Any]:
        """The settings without those that any folder of transformers has.

        A model may be read with a plain copy of its vocabulary: then special
        tokens in texts are text, and characters have the original's classes.
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
        """Return the fields as JSON can hold them."""
        return dataclasses.asdict(self) | {
            "added_tokens": [dataclasses.asdict(t) for t in self.added_tokens],
            "never_split": list(self.never_split),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "TokenizerSettings":
        """Return the settings that `as_json` gave."""
        tokens = [AddedToken(**token) for token in fields["added_tokens"]]
        words = tuple(fields["never_split"])
        return cls(
            **{**fields, "added_tokens": tuple(tokens), "never_split": words}
        )

    def strips(self, do_lower_case: bool, strip_accents: bool) -> bool:
        """Return whether accents are dropped, under these hparams."""
        return strip_accents if do_lower_case else self.strips_cased

    def with_tokens(self, vocab: dict[str, int]) -> dict[str, int]:
        """Return a vocabulary with the added tokens that it lacks."""
        return vocab | {token.content: token.id for token in self.added_tokens}


def digest_of(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256 of settings; empty for none."""
    if not settings:
        return ""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def settings_text(settings: TokenizerSettings) -> str | None:
    """Return the `tokenizer_config.json` of a vocabulary in this project.

    None if the settings are the original's, which needs no such file.
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


def copy_settings(vocab_file: str, folder: str) -> None:
    """Write into a folder what belongs to the copy of a vocabulary there."""
    path = os.path.join(folder, TOKENIZER_CONFIG)
    text = settings_text(read_settings(vocab_file))
    if text is not None:
        write_atomically(path, text)
    elif filesystem.exists(path):
        filesystem.remove(path)


def read_settings(vocab_file: str | os.PathLike) -> TokenizerSettings:
    """Read what the files beside a vocabulary say of its tokenizer."""
    from electra_tf.text import huggingface_tokenizer

    path = os.fspath(vocab_file)
    if path.endswith(".json"):  # byte-level BPE's, which says all itself
        return TokenizerSettings()
    folder = os.path.dirname(path)
    if huggingface_tokenizer.is_tokenizer(folder):
        return huggingface_tokenizer.read_tokenizer(folder, path)
    return TokenizerSettings()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splitting of text into words and added tokens as in `tokenizers`.

Source: tokenizers 0.23 `BertNormalizer`, `BertPreTokenizer` and
  `AddedVocabulary`; transformers 5 `BertTokenizerLegacy` for `never_split`.
"""

import itertools
import re
from collections.abc import Iterator, Mapping

from configure.errors import UserError
from electra_tf.text import library_characters as characters
from electra_tf.text.basic_tokenizer import split_raw_words
from electra_tf.text.tokenizer_settings import TokenizerSettings

_SPACES = "".join(filter(characters.is_whitespace, map(chr, range(0x3001))))
_WORDS = re.compile(f"[^{_SPACES}]+")


class LibraryBasicTokenizer:
    """Splitter of text into words and punctuation marks.

    Differs: deletes lone surrogates, which the library cannot represent.
    """

    def __init__(
        self, settings: TokenizerSettings, do_lower_case: bool, strip: bool
    ):
        """Set the settings; `strip` applies to lower-cased and cased text."""
        self.do_lower_case = do_lower_case
        self.strip_accents = strip
        self._clean_text = settings.clean_text
        self.ideographs_apart = settings.tokenize_chinese_chars
        self._cleaned: dict[str, str] = {}

    def tokenize(self, text: str) -> list[str]:
        """Split a text into words and punctuation marks."""
        parts = map(self.split_word, self.raw_words(text))
        return list(itertools.chain.from_iterable(parts))

    def raw_words(self, text: str) -> list[str]:
        """Split a text into words that can be processed independently."""
        if self._clean_text:
            return split_raw_words(text)
        return _WORDS.findall(text)

    def split_word(self, word: str) -> list[str]:
        """Normalize a word of `raw_words` and split it at punctuation."""
        return self.split_normalized(self.normalize(word))

    def normalize(self, text: str) -> str:
        """Normalize a text, such as a word or an added token."""
        return self.fold(self.clean(text))

    def clean(self, text: str) -> str:
        """Apply the settings for cleaning and ideographs to a text."""
        return "".join(map(self._clean, text))

    def fold(self, text: str) -> str:
        """Apply the settings for accents and casing to a text."""
        if self.strip_accents:
            text = characters.decompose(text)
            text = "".join(c for c in text if not characters.is_accent(c))
        return characters.lower(text) if self.do_lower_case else text

    def split_normalized(self, text: str) -> list[str]:
        """Split a normalized text into words and punctuation marks."""
        result, current = [], ""
        for char in text:
            is_space = characters.is_whitespace(char)
            if is_space or characters.is_punctuation(char):
                if current:
                    result.append(current)
                current = ""
                if not is_space:
                    result.append(char)
            else:
                current += char
        if current:
            result.append(current)
        return result

    def _clean(self, char: str) -> str:
        """Return the replacement of a character in cleaned text."""
        cleaned = self._cleaned.get(char)
        if cleaned is None:
            cleaned = self._cleaned[char] = self._cleaned_character(char)
        return cleaned

    def _cleaned_character(self, char: str) -> str:
        if "\ud800" <= char <= "\udfff":
            return ""
        if self._clean_text:
            if characters.is_removed(char):
                return ""
            if characters.is_whitespace(char):
                return " "
        if self.ideographs_apart and characters.is_ideograph(char):
            return f" {char} "
        return char


class AddedTokenSplitter:
    """Splitter of texts at the leftmost and longest added tokens."""

    def __init__(
        self,
        settings: TokenizerSettings,
        basic_tokenizer: LibraryBasicTokenizer,
        vocab: Mapping[str, int],
    ):
        self._basic = basic_tokenizer
        self.raw = {
            token.content: token.id
            for token in settings.added_tokens
            if not token.normalized
        }
        self.normalized = normalized_tokens(settings, basic_tokenizer)
        self.whole_words = {word: vocab[word] for word in settings.never_split}
        self.raw_pattern = _alternatives(self.raw)
        self.normalized_pattern = _alternatives(self.normalized)
        # Pattern of the longest parts of a text that can be split
        # independently.
        spaces = "".join(filter(basic_tokenizer.clean, _SPACES))
        texts = "".join((*self.raw, *self.normalized))
        has_spaces = any(map(characters.is_whitespace, texts))
        self.alone = re.compile("(?s).+" if has_spaces else f"[^{spaces}]+")

    def split(self, text: str) -> Iterator[str | int]:
        """Yield the ids of added tokens and the texts between tokens."""
        parts = _cut(text, self.raw_pattern, self.raw)
        if not self.normalized and not self.whole_words:
            yield from parts
            return
        for part in parts:
            if isinstance(part, int):
                yield part
            else:
                yield from self._split_rest(part)

    def _split_rest(self, text: str) -> Iterator[str | int]:
        for part in self._cut_words(text):
            if isinstance(part, int) or not self.normalized:
                yield part
            else:
                text = self._basic.normalize(part)
                yield from _cut(text, self.normalized_pattern, self.normalized)

    def _cut_words(self, text: str) -> Iterator[str | int]:
        """Yield the ids of `never_split` words, and the texts between words."""
        if not self.whole_words:
            yield text
            return
        text, start = self._basic.clean(text), 0
        for first, last, number in self.find_words(text):
            yield text[start:first]
            yield number
            start = last
        yield text[start:]

    def find_words(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and id of `never_split` words in a cleaned text."""
        if not self.whole_words:
            return
        for match in _WORDS.finditer(text):
            word = match.group()
            token_id = self.whole_words.get(word)
            if token_id is None:
                token_id = self.whole_words.get(self._basic.fold(word))
            if token_id is not None:
                yield match.start(), match.end(), token_id


def normalized_tokens(
    settings: TokenizerSettings, basic_tokenizer: LibraryBasicTokenizer
) -> dict[str, int]:
    """Return the ids of added tokens, by the normalized texts of the tokens."""
    tokens: dict[str, int] = {}
    for token in settings.added_tokens:
        if not token.normalized:
            continue
        content = basic_tokenizer.normalize(token.content)
        if not content.strip() or content in tokens:
            problem = "empty"
            if content.strip():
                problem = "equal to another added token"
            raise UserError(
                f"The added token {token.content!r} (id {token.id}) is"
                f" {problem} after normalization; expected a distinct text."
                " Delete the token from the tokenizer's files, or set the"
                ' token\'s field "normalized" to false.'
            )
        tokens[content] = token.id
    return tokens


def _alternatives(tokens: Mapping[str, int]) -> re.Pattern | None:
    """Return a pattern that matches the leftmost and longest token."""
    longest_first = sorted(tokens, key=len, reverse=True)
    text = "|".join(map(re.escape, longest_first))
    return re.compile(f"({text})") if text else None


def _cut(
    text: str, pattern: re.Pattern | None, tokens: Mapping[str, int]
) -> Iterator[str | int]:
    parts = pattern.split(text) if pattern else [text]
    for i, part in enumerate(parts):
        if i % 2:
            yield tokens[part]
        elif part:
            yield part

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text to words as the library `tokenizers` does, and added tokens.

Source: tokenizers 0.23 `BertNormalizer`, `BertPreTokenizer` and
  `AddedVocabulary`; transformers 5 `BertTokenizerLegacy` for `never_split`.
"""

import itertools
import re
from collections.abc import Iterator, Mapping

from configure.errors import UserError
from electra_tf.text import tokenizers_characters as characters
from electra_tf.text.tokenization import split_raw_words
from electra_tf.text.tokenizer_settings import TokenizerSettings

_SPACES = "".join(filter(characters.is_whitespace, map(chr, range(0x3001))))
_WORDS = re.compile(f"[^{_SPACES}]+")


class LibraryBasicTokenizer:
    """Splits text into words and punctuation marks.

    Differs: lone surrogates, which the library cannot hold, are dropped.
    """

    def __init__(
        self, settings: TokenizerSettings, do_lower_case: bool, strip: bool
    ):
        """Take settings; `strip` drops accents whatever the casing."""
        self.do_lower_case = do_lower_case
        self.strip_accents = strip
        self._clean_text = settings.clean_text
        self.ideographs_apart = settings.tokenize_chinese_chars
        self._cleaned: dict[str, str] = {}

    def tokenize(self, text: str) -> list[str]:
        """Split a text into words."""
        words = map(self.split_word, self.raw_words(text))
        return list(itertools.chain.from_iterable(words))

    def raw_words(self, text: str) -> list[str]:
        """Split a text at white space and around the commonest marks."""
        if self._clean_text:
            return split_raw_words(text)
        return _WORDS.findall(text)

    def split_word(self, word: str) -> list[str]:
        """Normalize a word of `raw_words` and cut it at punctuation."""
        return self.split_normalized(self.normalize(word))

    def normalize(self, text: str) -> str:
        """Return the text in which words and normalized tokens are found."""
        return self.fold(self.clean(text))

    def clean(self, text: str) -> str:
        """Drop control characters and put spaces around ideographs."""
        return "".join(map(self._clean, text))

    def fold(self, text: str) -> str:
        """Drop accents and lower-case, as far as the tokenizer does."""
        if self.strip_accents:
            text = characters.decompose(text)
            text = "".join(c for c in text if not characters.is_accent(c))
        return characters.lower(text) if self.do_lower_case else text

    def split_normalized(self, text: str) -> list[str]:
        """Cut normalized text into words."""
        words, current = [], ""
        for char in text:
            space = characters.is_whitespace(char)
            if space or characters.is_punctuation(char):
                if current:
                    words.append(current)
                current = ""
                if not space:
                    words.append(char)
            else:
                current += char
        return [*words, current] if current else words

    def _clean(self, char: str) -> str:
        """Return what a character becomes before accents and case."""
        known = self._cleaned.get(char)
        if known is None:
            known = self._cleaned[char] = self._cleaned_character(char)
        return known

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
    """Cuts texts at added tokens, leftmost first, the longest of several."""

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
        self.words = {word: vocab[word] for word in settings.never_split}
        self.raw_pattern = _alternatives(self.raw)
        self.normalized_pattern = _alternatives(self.normalized)
        # Texts that can be split one by one.
        spaces = "".join(filter(basic_tokenizer.clean, _SPACES))
        texts = "".join((*self.raw, *self.normalized))
        has_spaces = any(map(characters.is_whitespace, texts))
        self.alone = re.compile("(?s).+" if has_spaces else f"[^{spaces}]+")

    def split(self, text: str) -> Iterator[str | int]:
        """Yield ids of tokens and the texts between them, in order."""
        parts = _cut(text, self.raw_pattern, self.raw)
        if not self.normalized and not self.words:
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
        """Yield ids of words that are never split, and what is between."""
        if not self.words:
            yield text
            return
        text, start = self._basic.clean(text), 0
        for first, last, number in self.find_words(text):
            yield text[start:first]
            yield number
            start = last
        yield text[start:]

    def find_words(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and id of cleaned text's words that stay whole."""
        if not self.words:
            return
        for match in _WORDS.finditer(text):
            word = match.group()
            number = self.words.get(word)
            if number is None:
                number = self.words.get(self._basic.fold(word))
            if number is not None:
                yield match.start(), match.end(), number


def normalized_tokens(
    settings: TokenizerSettings, basic_tokenizer: LibraryBasicTokenizer
) -> dict[str, int]:
    """Return texts and ids of the tokens that are found in normalized text."""
    tokens: dict[str, int] = {}
    for token in settings.added_tokens:
        if not token.normalized:
            continue
        content = basic_tokenizer.normalize(token.content)
        if not content.strip() or content in tokens:
            problem = "equal to another" if content.strip() else "empty"
            raise UserError(
                f"The added token {token.content!r} (id {token.id}) is"
                f" {problem} after normalization. Delete it from the"
                " tokenizer's files, or set its normalized to false."
            )
        tokens[content] = token.id
    return tokens


def _alternatives(tokens: Mapping[str, int]) -> re.Pattern | None:
    """Return a pattern of the leftmost and longest token."""
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

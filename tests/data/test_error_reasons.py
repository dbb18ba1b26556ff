# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors of builders also name invalid bytes that were left out before."""

import pytest

from electra_tf.commands import build_vocab
from tests.conftest import refused

LATIN = b"\x80\x81\n\x82\n"
INVALID = r"(?s){}.*3 of 5 bytes .60\.000%. are not UTF-8.*{}: 3 bytes"


@pytest.mark.parametrize("processes", [1, 2])
def test_a_corpus_without_utf8_is_refused_with_the_reason(
    build, tmp_path, processes
):
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin/a.txt").write_bytes(LATIN)
    corpus = {"path": str(tmp_path / "latin")}
    message = INVALID.format("no training example", "a.txt")
    refused(message, build, "out", corpus, num_processes=processes)


def test_an_error_of_one_file_names_the_bytes_of_another(build, tmp_path):
    folder = tmp_path / "latin"
    folder.mkdir()
    (folder / "a.txt").write_bytes(LATIN)
    (folder / "b.jsonl").write_text('[{"text": "w"},\n{"text": "w"}]\n')
    message = INVALID.format("b.jsonl: the line at byte 0 is not JSON", "a.txt")
    refused(message, build, "out", {"path": str(folder)}, num_processes=1)


@pytest.mark.parametrize(
    "text", ['[{"text": "w"},\n{"text": "w"}]\n', '[{"text": "w"}]\n']
)
def test_a_json_array_is_no_corpus_of_json_lines(build, tmp_path, text):
    path = tmp_path / "b.jsonl"
    path.write_text(text)
    message = r"b\.jsonl: the line at byte 0.*one JSON object per line .jq -c"
    refused(message, build, "out", {"path": str(path)})


def test_build_vocab_names_the_bytes_that_it_left_out(tmp_path):
    (tmp_path / "a.txt").write_bytes(LATIN)
    argv = ["", str(tmp_path / "a.txt"), "--output", str(tmp_path / "v.txt")]
    args = build_vocab.parse_flags(argv)
    refused(INVALID.format("no words", "a.txt"), build_vocab.main, args)

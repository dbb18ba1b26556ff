# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Corpora of all formats are read, and bad texts are named."""

import dataclasses
import gzip
import io
import json
import lzma
import random
import tarfile

import hypothesis
import pytest
from hypothesis import strategies as st

from electra_tf.data import corpora
from electra_tf.data.corpora import Corpus, ReadingReport
from tests.conftest import refused

TEXT = "one a\none b\n\n \n  two a \r\n\x0c\nthree a\nthree b"
DOCUMENTS = [["one a", "one b"], ["two a"], ["three a", "three b"]]
JOINED = [[line for document in DOCUMENTS for line in document]]


def _documents(corpus, sources=None, shuffle=None):
    """Return the lines of each document, and the report of the reading."""
    report = ReadingReport()
    documents, current = [], []
    for source in sources or corpora.list_sources(corpus).sources:
        for piece in corpora.read_documents(source, corpus, report, shuffle):
            current += piece.lines
            if piece.is_last:
                documents.append(current)
                current = []
    assert not current
    return documents, report


def _pieces(source, corpus):
    return list(corpora.read_documents(source, corpus, ReadingReport()))


def _archive(path, members, mode="w:xz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                archive.addfile(info)


PACKED = {"a.txt": bytes, "a": bytes}
PACKED |= {"a.txt.gz": gzip.compress, "a.txt.xz": lzma.compress}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("blanks", [True, False])
def test_text_files_become_documents(tmp_path, name, blanks):
    (tmp_path / name).write_bytes(PACKED[name](TEXT.encode()))
    corpus = Corpus(str(tmp_path), blanks_separate_docs=blanks)
    assert _documents(corpus)[0] == (DOCUMENTS if blanks else JOINED)


def test_jsonl_records_are_documents(tmp_path):
    lines = [json.dumps({"body": TEXT}), "", json.dumps({"body": "four"})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    corpus = Corpus(str(tmp_path), text_field="body")
    assert _documents(corpus)[0] == [*DOCUMENTS, ["four"]]


def test_jsonl_has_other_extensions_and_a_byte_order_mark(tmp_path):
    text = json.dumps({"text": TEXT}).encode()
    packed = lzma.compress("\ufeff".encode() + text)
    (tmp_path / "a.NDJSON.xz").write_bytes(packed)
    (tmp_path / "b.JSONL").write_bytes(text)
    assert _documents(Corpus(str(tmp_path)))[0] == DOCUMENTS * 2


def test_archive_members_are_documents(tmp_path):
    members = [("b.txt", TEXT.encode()), ("a.txt", b"first\n\nsecond\n")]
    _archive(tmp_path / "part_data.xz", members)
    corpus = Corpus(str(tmp_path), blanks_separate_docs=False)
    assert _documents(corpus)[0] == [*JOINED, ["first", "second"]]


def test_members_are_shuffled_from_their_sorted_order(tmp_path):
    names = [f"{i:02}" for i in range(20)]
    members = [(name, name.encode()) for name in reversed(names)]
    _archive(tmp_path / "x.tar", members, "w")
    corpus = Corpus(str(tmp_path), blanks_separate_docs=False)
    documents, _ = _documents(corpus, shuffle=random.Random(3))
    random.Random(3).shuffle(names)
    assert documents == [[name] for name in names]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("/etc/absolute.txt", b"x"),
        ("ok/../../escape.txt", b"x"),
        ("link.txt", (tarfile.SYMTYPE, "/etc/passwd")),
        ("pipe", (tarfile.FIFOTYPE, "")),
    ],
)
def test_unsafe_archives_are_refused(tmp_path, name, content):
    _archive(tmp_path / "bad.tar.xz", [("a.txt", b"fine"), (name, content)])
    before = sorted(tmp_path.iterdir())
    refused("Nothing was extracted", _documents, Corpus(str(tmp_path)))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.jsonl": b"       \n{oops\n"}, "byte 8 is not JSON"),
        (
            {"a.jsonl": b'{"text": "a", "text": "b"}\n'},
            "byte 0: more than one value of text; expected one value",
        ),
        ({"a.jsonl": b'{"x": 1}\n'}, "no field 'text'.*has: x.*--text_field"),
        ({}, "does not exist"),
        ({"empty.txt": b"", "inner/a": b"a"}, r"files: 1, all empty\).*inner"),
        ({"a.txt": "да".encode("utf-16")}, "a.txt: found UTF-16"),
        ({"cut.gz": gzip.compress(TEXT.encode())[:-9]}, "cut.gz.*corrupt"),
        ({"a.txt.xz": lzma.compress(TEXT.encode())[:-9]}, "xz.*corrupt"),
    ],
)
def test_a_corpus_with_a_bad_file_is_refused(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    refused(message, _documents, Corpus(str(tmp_path / "in")))


def test_invalid_bytes_are_counted_by_file(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ok \xc3\xa9\nbad \xff\xfe x\n\xe2\x82\n")
    documents, report = _documents(Corpus(str(tmp_path)))
    assert documents == [["ok é", "bad  x"]]
    assert report.invalid == {"a.txt": [10, 4]}


def test_nested_directories_are_listed(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a")
    (tmp_path / "inner").mkdir()
    listing = corpora.list_sources(Corpus(str(tmp_path)))
    assert [source.name for source in listing.sources] == ["a.txt"]
    assert listing.nested_directories == ["inner"]


@hypothesis.given(
    st.lists(st.sampled_from(["", " ", "a", "bc é", "\x85", "\r"])),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from(["a.txt", "a.jsonl"]),
)
def test_the_parts_of_a_file_have_all_documents(
    tmp_path_factory, lines, count, ends, name
):
    folder = tmp_path_factory.mktemp("corpus")
    if name == "a.jsonl":
        lines = [json.dumps({"text": line}) for line in [*lines, "x"]]
    text = "\n".join(lines)
    if ends:
        text += "\n"
    text = text or "x"
    (folder / name).write_bytes(text.encode())
    corpus = Corpus(str(folder))
    (source,) = corpora.list_sources(corpus).sources
    parts = corpora.split_source(source, corpus, count)
    assert len(parts) <= count
    pieces = [piece for part in parts for piece in _pieces(part, corpus)]
    assert pieces == _pieces(source, corpus)


def test_long_documents_come_in_pieces(tmp_path):
    (tmp_path / "a.txt").write_text("line\n" * 10_000)
    corpus = Corpus(str(tmp_path))
    (source,) = corpora.list_sources(corpus).sources
    pieces = _pieces(source, corpus)
    assert [piece.is_last for piece in pieces] == [False, False, True]
    assert {piece.position for piece in pieces} == {"0"}
    assert sum(len(piece.lines) for piece in pieces) == 10_000


def test_tfds_data_sets_are_read_by_name_and_range(tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")

    class TinyProse(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            texts = tfds.features.FeaturesDict({"body": tfds.features.Text()})
            return self.dataset_info_from_configs(features=texts)

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            for i in range(9):
                yield i, {"body": f"line {i}\nsecond\n\nnext {i}"}

    corpus = Corpus(
        corpus_format="tfds",
        text_field="body",
        tfds_name="tiny_prose",
        tfds_data_dir=str(tmp_path),
    )
    (source,) = corpora.list_sources(corpus).sources
    assert source.size == 9
    documents, _ = _documents(corpus, [source])
    assert len(documents) == 18
    assert sorted(documents)[:2] == [["line 0", "second"], ["line 1", "second"]]
    parts = corpora.split_source(source, corpus, 4)
    assert len(parts) == 4 and _documents(corpus, parts)[0] == documents
    corpus = dataclasses.replace(corpus, text_field="text")
    refused("no field 'text'.*body", _documents, corpus, [source])


def test_an_example_without_fields_is_refused():
    message = "tiny_prose.0.: the record is of type bytes; expected an object"
    refused(message, corpora._text_of, b"prose", "text", "tiny_prose[0]")

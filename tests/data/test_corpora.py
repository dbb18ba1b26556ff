# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts of every form, and rows of tables, bad ones included."""

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

from electra_tf.data import corpora, tables
from electra_tf.data.corpora import Corpus, ReadingReport
from tests.conftest import refused

TEXT = "one a\none b\n\n \n  two a \r\n\x0c\nthree a\nthree b"
DOCUMENTS = [["one a", "one b"], ["two a"], ["three a", "three b"]]
JOINED = [[line for document in DOCUMENTS for line in document]]


def _documents(corpus, sources=None, shuffle=None):
    """Lines of each document, and what reading reported."""
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


def test_jsonl_records_and_archive_members_are_documents(tmp_path):
    lines = [json.dumps({"body": TEXT}), "", json.dumps({"body": "four"})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    corpus = Corpus(str(tmp_path), text_field="body")
    assert _documents(corpus)[0] == [*DOCUMENTS, ["four"]]
    # By other names, too; a byte order mark is no text.
    plain = (tmp_path / "a.jsonl").read_bytes()
    packed = lzma.compress("\ufeff".encode() + plain)
    (tmp_path / "a.NDJSON.xz").write_bytes(packed)
    (tmp_path / "a.jsonl").rename(tmp_path / "b.JSONL")
    assert _documents(corpus)[0] == [*DOCUMENTS, ["four"]] * 2
    for path in tmp_path.iterdir():
        path.unlink()
    members = [("b.txt", TEXT.encode()), ("a.txt", b"first\n\nsecond\n")]
    _archive(tmp_path / "part_data.xz", members)
    corpus = Corpus(str(tmp_path), blanks_separate_docs=False)
    assert _documents(corpus)[0] == [*JOINED, ["first", "second"]]


def test_members_are_shuffled_from_their_sorted_order(tmp_path):
    names = [f"{i:02}" for i in range(20)]
    members = [(name, name.encode()) for name in reversed(names)]
    _archive(tmp_path / "x.tar", members, "w")
    corpus = Corpus(str(tmp_path), blanks_separate_docs=False)
    found, _ = _documents(corpus, shuffle=random.Random(3))
    random.Random(3).shuffle(names)
    assert found == [[name] for name in names]


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
        ({"a.jsonl": b'{"x": 1}\n'}, "no field 'text'.*has: x.*--text_field"),
        ({}, "does not exist"),
        ({"empty.txt": b"", "inner/a": b"a"}, "1 files, all empty.*inner"),
        ({"a.txt": "да".encode("utf-16")}, "a.txt: found UTF-16"),
        ({"cut.gz": gzip.compress(TEXT.encode())[:-9]}, "cut.gz.*damaged"),
        ({"a.txt.xz": lzma.compress(TEXT.encode())[:-9]}, "xz.*damaged"),
    ],
)
def test_what_holds_no_whole_text_is_named(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    refused(message, _documents, Corpus(str(tmp_path / "in")))


def test_what_was_left_out_is_counted_and_placed(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ok \xc3\xa9\nbad \xff\xfe x\n\xe2\x82\n")
    documents, report = _documents(Corpus(str(tmp_path)))
    assert documents == [["ok é", "bad  x"]]
    assert report.invalid == {"a.txt": [10, 4]}
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
def test_splits_hold_all_documents(tmp_path_factory, lines, count, ends, name):
    folder = tmp_path_factory.mktemp("corpus")
    if name == "a.jsonl":
        lines = [json.dumps({"text": line}) for line in [*lines, "x"]]
    text = "\n".join(lines) + "\n" * ends or "x"
    (folder / name).write_bytes(text.encode())
    corpus = Corpus(str(folder))
    (source,) = corpora.list_sources(corpus).sources
    parts = corpora.split_source(source, corpus, count)
    assert len(parts) <= count
    found = [piece for part in parts for piece in _pieces(part, corpus)]
    assert found == _pieces(source, corpus)


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

    place = {"tfds_name": "tiny_prose", "tfds_data_dir": str(tmp_path)}
    corpus = Corpus(corpus_format="tfds", text_field="body", **place)
    (source,) = corpora.list_sources(corpus).sources
    assert source.size == 9
    documents, _ = _documents(corpus, [source])
    assert len(documents) == 18
    assert sorted(documents)[:2] == [["line 0", "second"], ["line 1", "second"]]
    parts = corpora.split_source(source, corpus, 4)
    assert len(parts) == 4 and _documents(corpus, parts)[0] == documents
    corpus = dataclasses.replace(corpus, text_field="text")
    refused("no field 'text'.*body", _documents, corpus, [source])


@pytest.fixture
def rows(tmp_path):
    def read(content, kind, **options):
        path = tmp_path / f"file.{kind}"
        path.write_bytes(content)
        return list(tables.read_rows(str(path), kind, **options))

    return read


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        # Split at tabs and nothing else.
        (b'a\t"b\n\nc d\r\n', "tsv", [(1, ["a", '"b']), (2, []), (3, ["c d"])]),
        # Cells may be quoted and span lines.
        (b'a,"b, c\nd"\ne\n', "csv", [(1, ["a", "b, c\nd"]), (3, ["e"])]),
        (b"\xef\xbb\xbfa\tb\n", "tsv", [(1, ["a", "b"])]),
        # A row that ends wrongly is bad, and not the one after it.
        (b'"a\nb\xff\nc"x\nd\n', "csv", [(2, []), (4, ["d"])]),
    ],
)
def test_cells_of_lines(rows, content, kind, expected):
    assert [(r.line, r.cells) for r in rows(content, kind)] == expected


def test_a_long_cell_is_one_cell(rows):
    text = "of two thousand pages\n" * 9_000
    found = rows(f'"{text}",1\nnext,0\n'.encode(), "csv")
    assert [row.cells for row in found] == [[text, "1"], ["next", "0"]]


def test_json_lines_are_objects(rows):
    found = rows(b'{"a": 1}\n[2]\n{"a"\n\n', "jsonl")
    assert [r.cells for r in found] == [{"a": 1}, {}, {}, {}]
    assert [bool(r.expected) for r in found] == [False, True, True, False]
    assert "line 1 column" in found[2].content


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_a_line_that_is_not_utf8_is_one_bad_row(rows, kind):
    found = rows(b'{"a": 1}\n\xff\n{"a": 1}\n', kind)
    assert len(found) == 3
    assert found[1].line == 2 and "UTF-8 (iconv" in found[1].expected
    assert not found[0].expected and not found[2].expected


def test_the_format_is_declared_or_told_by_the_name():
    assert tables.resolve_format("x.CSV") == "csv"
    assert tables.resolve_format("x.txt") == "conll"
    assert tables.resolve_format("x.txt", "tsv") == "tsv"
    refused("set format", tables.resolve_format, "x.dat")
    refused("tsv, csv", tables.resolve_format, "x.tsv", "xml")

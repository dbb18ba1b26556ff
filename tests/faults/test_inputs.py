# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hostile files and requests, extreme sizes, damaged models."""

import gzip
import io
import json
import logging
import lzma
import random
import shutil
import socket
import tarfile
import time
import zipfile

import pytest

from configure.finetuning import FinetuningConfig
from configure.hparams_json import read_hparams
from configure.json_text import parse_json
from electra_tf.data import archives, corpora
from electra_tf.data.corpora import Corpus, ReadingReport
from electra_tf.data.input_files import InputFiles
from electra_tf.data.manifest import load_manifest
from electra_tf.extras.serving import application
from electra_tf.extras.serving.served_model import open_model
from electra_tf.files import reading
from electra_tf.files.digests import write_digests
from electra_tf.files.patterns import normalize_patterns
from electra_tf.files.reading import read_text
from tests.conftest import refused
from tests.extras.serving.conftest import start, toy_folder, toy_model  # noqa: F401

WORDS = random.Random(0).choices(["some", "words", "of", "text"], k=20_000)
TEXT = (" ".join(WORDS) + "\n").encode()


def _read(corpus, shuffle=None):
    for source in corpora.list_sources(corpus).sources:
        report = ReadingReport()
        pieces = corpora.read_documents(source, corpus, report, shuffle)
        yield from (line for piece in pieces for line in piece.lines)


def _tar(members, mode="w:gz", headers=None):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.pax_headers = headers or {}
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def _zip():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.txt", "text")
    return packed.getvalue()


LONG = b"a" * (2 << 20)
HUGE = tarfile.TarInfo("a")
HUGE.size = 1 << 40


def by_name(value):
    """Return no id for bytes: archives contain the time of their creation."""
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize("shuffle", [None, random.Random(1)])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", LONG),
        ("a.txt.gz", gzip.compress(LONG, 1)),
        ("a.txt.xz", lzma.compress(LONG, preset=0)),
        ("a.jsonl", json.dumps({"text": LONG.decode()}).encode()),
        ("a.tar.bz2", _tar([("a.txt", LONG)], "w:bz2")),
    ],
    ids=by_name,
)
def test_a_line_is_read_up_to_a_limit(tmp_path, name, content, shuffle):
    (tmp_path / name).write_bytes(content)
    limited = Corpus(str(tmp_path), max_line_mb=1)
    refused(rf"{name}.*longer than 1 MiB", list, _read(limited, shuffle))
    assert list(_read(Corpus(str(tmp_path)), shuffle)) == [LONG.decode()]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt.gz", gzip.compress(b"so\n" * 200_000)),
        ("a.jsonl.gz", gzip.compress(b'{"text": "so"}\n' * 50_000)),
        ("a.tar.xz", _tar([("a.txt", b"so\n" * 200_000)], "w:xz")),
    ],
    ids=by_name,
)
def test_a_file_is_decompressed_up_to_a_ratio(
    tmp_path, monkeypatch, name, content
):
    monkeypatch.setattr(archives, "_UNPACKED_ANYWAY", 1000)
    (tmp_path / name).write_bytes(content)
    limited = Corpus(str(tmp_path), max_ratio=50)
    refused(rf"{name}.*--max_ratio", list, _read(limited))
    assert len(set(_read(Corpus(str(tmp_path), max_ratio=10_000)))) == 1


def test_an_archive_is_kept_in_memory_up_to_a_size(tmp_path, monkeypatch):
    path = tmp_path / "a.tar"
    path.write_bytes(_tar([(name, TEXT) for name in "abc"], "w"))
    corpus = Corpus(str(tmp_path), max_archive_gb=1)
    assert len(list(_read(corpus, random.Random(0)))) == 3
    texts = archives.read_members(str(path), corpus)
    object.__setattr__(corpus, "max_archive_gb", 0)
    message = "--max_archive_gb.*--draws=document"
    refused(message, archives.load_members, texts, str(path), corpus)
    refused("max_archive_gb: must be at least 1", list, _read(corpus))


def test_a_member_is_read_in_parts_unless_members_are_shuffled(tmp_path):
    import tracemalloc

    lines = b"\n".join([b"some words of a line"] * 500_000)
    (tmp_path / "a.tar").write_bytes(_tar([("a.txt", lines)], "w"))
    tracemalloc.start()
    try:
        assert sum(1 for _ in _read(Corpus(str(tmp_path)))) == 500_000
        assert tracemalloc.get_traced_memory()[1] < len(lines) / 2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("header.tar.gz", _tar([("a", b"")], headers={"a": "b" * (3 << 20)})),
        ("long.tar.gz", _tar([("a" * (3 << 20), b"")])),
        ("sparse.tar", HUGE.tobuf() + b"\0" * 2048),
        ("cut.tar", _tar([("a", TEXT)], "w")[:30_000]),
        ("cut.tgz", _tar([("a", TEXT)])[:-2000]),
        ("start.tar", b"\0" * 20 + _tar([("a", TEXT)], "w")[20:]),
        ("tar.txt", _tar([("a", TEXT)], "w")),
        ("zip.gz", gzip.compress(_zip())),
        ("gz.txt", gzip.compress(TEXT)),
        ("seven.tar.gz", b"7z\xbc\xaf\x27\x1c" + TEXT),
    ],
    ids=by_name,
)
def test_a_file_that_is_neither_text_nor_a_whole_archive_is_named(
    tmp_path, name, content
):
    (tmp_path / name).write_bytes(content)
    refused(rf"{name}: ", list, _read(Corpus(str(tmp_path))))


def test_broken_links_are_named(tmp_path, tiny_config):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.txt").symlink_to(tmp_path / "gone")
    message = r"b\.txt: broken symbolic link"
    refused(message, corpora.list_sources, Corpus(str(tmp_path)))
    config = tiny_config(pretrain_tfrecords=str(tmp_path / "*.txt"))
    refused(message, InputFiles.of(config).find_records, training=True)


@pytest.mark.parametrize(
    "patterns",
    [
        "records/a*, records/b?",
        "{folder}//records/./a*,link/b?",
        "../{name}/records/a*,{folder}/link/../records/b?",
    ],
)
def test_spellings_of_a_folder_are_equal(tmp_path, monkeypatch, patterns):
    (tmp_path / "records").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "records")
    monkeypatch.chdir(tmp_path)
    patterns = patterns.format(folder=tmp_path, name=tmp_path.name)
    expected = [f"{tmp_path}/records/a*", f"{tmp_path}/records/b?"]
    assert normalize_patterns(patterns) == expected


def test_remote_patterns_stay_unchanged():
    assert normalize_patterns("gs://a//b*") == ["gs://a//b*"]


def test_the_time_of_json_is_linear_in_its_names():
    names = [f'"n{i}": 1' for i in range(100_000)]
    started = time.process_time()
    assert len(parse_json("{" + ",".join(names) + "}", "x")) == 100_000
    twice = "{" + ",".join([*names, names[7]]) + "}"
    refused("more than one value of n7", parse_json, twice, "x")
    assert time.process_time() - started < 5


DEEP = "[" * 100_000


def test_a_deep_manifest_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text(DEEP)
    refused(r"manifest\.json.*nested more", load_manifest, str(tmp_path))


def test_a_deep_line_of_a_corpus_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(DEEP)
    lines = _read(Corpus(str(tmp_path / "a.jsonl")))
    refused(r"a\.jsonl: the line at byte 0 is not", list, lines)


def test_a_deep_hparam_is_refused():
    message = "hparam task_names: expected a list"
    refused(message, FinetuningConfig.create, "m", "d", task_names=DEEP)


def test_json_files_are_read_up_to_a_size(tmp_path, monkeypatch):
    path = tmp_path / "manifest.json"
    path.write_text('{"seed": 1}' + " " * 100)
    monkeypatch.setattr("configure.hparams_json._MAX_CHARACTERS", 100)
    refused(r"manifest\.json.*more than 100", read_hparams, str(path))
    monkeypatch.setattr(reading, "MAX_TEXT_BYTES", 100)
    refused(r"manifest\.json: the file has 111 bytes", read_text, str(path))


@pytest.mark.parametrize(
    "outside", ["../secret.tsv", "/etc/passwd", "inner/../../x.tsv"]
)
def test_files_outside_a_task_s_folder_need_a_flag(
    tmp_path, tiny_finetuning, outside
):
    from electra_tf.finetuning.registry import get_tasks

    path = tmp_path / "task" / "task.json"
    path.parent.mkdir()
    task = {
        "name": "mine",
        "columns": {"text_a": 0, "label": 1},
        "files": {"train": "inner/../train.tsv", "dev": outside},
    }
    path.write_text(json.dumps(task))
    hparams = {
        **tiny_finetuning,
        "task_config": str(path),
        "task_names": ["mine"],
        "max_seq_length": 32,
    }
    config = FinetuningConfig.create("m", str(tmp_path), **hparams)
    refused(r"task\.json: files\.dev.*outside", get_tasks, config)
    hparams["allow_outside_files"] = True
    config = FinetuningConfig.create("m", str(tmp_path), **hparams)
    assert get_tasks(config)[0].name == "mine"


@pytest.mark.parametrize("position", [5, 0.5, -1])
def test_a_flipped_bit_of_a_saved_model_is_detected(
    toy_folder, tmp_path, position
):
    folder = tmp_path / "toy"
    shutil.copytree(f"{toy_folder}/10", folder)
    write_digests(str(folder))
    assert open_model(str(folder)).kind == "classification"
    path = folder / "saved_model.pb"
    content = bytearray(path.read_bytes())
    if isinstance(position, float):
        position = int(position * len(content))
    content[position] ^= 1 << 3
    path.write_bytes(content)
    refused(r"saved_model\.pb: checksum differs", open_model, str(folder))


@pytest.fixture
def server(monkeypatch, start, toy_model):
    monkeypatch.setattr(application, "HEADER_SECONDS", 0.5)
    return start(toy_model)


PLACE = "/v1/models/toy:predict"
HEAD = (
    f"POST {PLACE} HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
)


def _connect(server):
    return socket.create_connection(("127.0.0.1", server.port), 20)


REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("header", [b"", REQUEST + b"X-A: "])
def test_an_unfinished_header_times_out(server, header):
    started = time.monotonic()
    with _connect(server) as client:
        client.sendall(header)
        assert client.recv(100) == b""
    assert time.monotonic() - started < 5
    assert server.ask("GET", "/healthz")[0] == 200


def test_an_unfinished_second_header_times_out(server):
    started = time.monotonic()
    with _connect(server) as client:
        client.sendall(REQUEST + b"\r\nGET /he")
        assert client.recv(10_000).startswith(b"HTTP/1.1 200")
        assert client.recv(100) == b""
    assert time.monotonic() - started < 5


def test_an_unfinished_body_times_out(server, monkeypatch):
    monkeypatch.setattr(application, "BODY_SECONDS", 0.5)
    with _connect(server) as client:
        client.sendall(HEAD.encode() + b"{")
        assert client.recv(10_000).startswith(b"HTTP/1.1 408")


def test_an_aborted_upload_is_one_line_of_log(server, caplog):
    caplog.set_level(logging.INFO)
    with _connect(server) as client:
        client.sendall(HEAD.encode() + b'{"instances": [')
        time.sleep(0.2)
    until = time.monotonic() + 10
    while not caplog.records and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.2)
    (record,) = caplog.records
    assert (
        record.getMessage() == f"POST {PLACE}: the client closed the connection"
    )
    assert not record.exc_info


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_invalid_http_is_one_line_of_log(server, caplog, headers):
    with _connect(server) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + headers)
        assert client.recv(100).startswith(b"HTTP/1.0 400")
    (record,) = caplog.records
    assert record.getMessage().startswith("Error handling request")
    assert "Content-Length" in record.getMessage() and not record.exc_info

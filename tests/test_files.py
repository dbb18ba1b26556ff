# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files are whole or absent; lines come one by one, bad ones with a reason."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest

from configure.errors import UserError
from configure.formatting import join_names, limit_lines
from electra_tf.files.atomic import (
    atomic_file,
    part_folder,
    part_path,
    write_atomically,
)
from electra_tf.files.digests import file_sha256
from electra_tf.files.lines import Line, LineReader
from electra_tf.files.patterns import find_files
from tests.conftest import ROOT, refused


def test_a_file_appears_at_once_and_errors_of_others_are_theirs(tmp_path):
    path = tmp_path / "new" / "a.json"
    with atomic_file(str(path)) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    write_atomically(str(path), "whole ä")
    assert path.read_text(encoding="utf-8") == "whole ä"
    assert os.listdir(path.parent) == ["a.json"]
    with (
        pytest.raises(FileNotFoundError),
        atomic_file(str(tmp_path / "a")),
    ):
        open(tmp_path / "none")


@pytest.mark.parametrize("keep", [False, True])
def test_after_an_error_the_earlier_file_is_there(tmp_path, keep):
    path = tmp_path / "a"
    path.write_text("before")
    with pytest.raises(KeyError), atomic_file(str(path), keep=keep):
        raise KeyError
    assert path.read_text() == "before"
    assert (tmp_path / "a.tmp").exists() == keep


def test_a_second_writer_of_a_file_waits_for_the_first(tmp_path):
    path = str(tmp_path / "a")
    second = threading.Thread(target=write_atomically, args=(path, "2"))
    with atomic_file(path) as file:
        file.write(b"fir")
        second.start()
        second.join(0.1)
        assert second.is_alive() and not os.path.exists(path)
        file.write(b"st")
    second.join()
    assert (tmp_path / "a").read_text() == "2"
    assert os.listdir(tmp_path) == ["a"]


def test_the_unfinished_folder_of_a_killed_process_is_removed(tmp_path):
    code = (
        "import os, sys; from electra_tf.files import atomic\n"
        "with atomic.part_folder(*sys.argv[1:]): os.kill(os.getpid(), 9)"
    )
    places = [str(tmp_path / "model"), str(tmp_path)]
    subprocess.run([sys.executable, "-c", code, *places], cwd=ROOT)
    (left,) = os.listdir(tmp_path)
    assert left.startswith("model.")
    with part_folder(*places) as folder:
        assert os.listdir(tmp_path) == [os.path.basename(folder)] != [left]
        refused("is writing it", part_path, places[0])
    assert not os.listdir(tmp_path)


def test_a_file_that_cannot_be_written_is_named_with_a_remedy(tmp_path):
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "a")
    with pytest.raises(UserError, match="file/a: cannot be written.*Make room"):
        write_atomically(path, "", hint="Make room.")
    refused("is a directory", write_atomically, str(tmp_path), "")


@pytest.fixture
def lines(tmp_path):
    def read(content, name="a.txt"):
        (tmp_path / name).write_bytes(content)
        reader = LineReader(str(tmp_path / name))
        return list(reader), reader

    return read


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_text_in_utf_16_is_refused_by_name(lines, encoding):
    message = r"a\.txt:1: found UTF-16.*expected text in UTF-8.*iconv"
    refused(message, lines, "a\tx\nb\ty\n".encode(encoding))


def test_lines_end_at_newlines_and_bad_ones_have_a_reason(lines, monkeypatch):
    found, reader = lines("\ufeffa\u2028b\r\n\nc".encode())
    assert [line.text for line in found] == ["a\u2028b", "", "c"]
    assert [line.number for line in found] == [1, 2, 3]
    assert reader.done == reader.size() == 12
    found, reader = lines(b"a\nb\xff\n")
    assert found[1] == Line(2, None, "b'b\\xff'", found[1].expected)
    assert found[1].expected.startswith("text in UTF-8 (iconv")
    refused(r"a\.txt:2: found .* expected text in", list, reader.texts())
    monkeypatch.setattr("electra_tf.files.lines.MAX_LINE_BYTES", 4)
    found, reader = lines(b"abcdefghij\nabc\nabcd")
    assert [line.text for line in found] == [None, "abc", None]
    assert "more than 4 bytes" in found[0].found
    assert reader.done == 19


def test_packed_files_and_standard_input_are_read(lines, monkeypatch):
    packed = gzip.compress(b"a\nb\n")
    assert [line.text for line in lines(packed, "a.gz")[0]] == ["a", "b"]
    refused("cannot be decompressed", lines, packed[:-9], "a.gz")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    assert list(LineReader("-").texts()) == ["x"]
    assert LineReader("-").size() is None


def test_long_lists_are_cut_and_counted():
    assert join_names("abc") == "a, b, c"
    assert join_names("abcdefg", 2) == "a, b and 5 more"
    assert limit_lines("abc", 2) == ["  a", "  b", "  ... and 1 more"]
    assert limit_lines("ab", 2, "") == ["a", "b"]


def test_a_digest_is_that_of_the_bytes_and_holds_one_block_at_once(tmp_path):
    path = tmp_path / "large"
    content = b"0123456789abcdef" * 2**20
    path.write_bytes(content)
    expected = hashlib.sha256(content).hexdigest()
    tracemalloc.start()
    assert file_sha256(str(path)) == expected
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(content) / 4
    refused("no such file", file_sha256, str(tmp_path / "absent"))


def test_a_folder_that_is_there_stands_for_itself(tmp_path, monkeypatch):
    for folder in ("d[1]", "d1", "a,b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(folder)
    here = str(tmp_path / "d[1]" / "x.txt")
    assert find_files(f"{tmp_path}/d[1]/x*")[0] == [here]
    assert len(find_files(f"{tmp_path}/d?/*, {here[:-8]}/d1/x*")[0]) == 1
    for name in ("p[1].txt", "p1.txt"):
        (tmp_path / name).write_text(name)
    file = str(tmp_path / "p[1].txt")
    assert find_files(file)[0] == [file]
    for folder in ("d[1]", "a,b"):
        monkeypatch.chdir(tmp_path / folder)
        assert find_files("x*")[0] == [str(tmp_path / folder / "x.txt")]


def test_a_folder_among_files_is_refused_or_left_out(tmp_path):
    (tmp_path / "records").mkdir()
    with pytest.raises(UserError, match=r"records: is a directory.*records/\*"):
        find_files(f"{tmp_path}/records")
    assert find_files(f"{tmp_path}/*", skip_folders=True) == ([], [])

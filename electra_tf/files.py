# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files by path: local ones directly, `scheme://` ones through tf.io.gfile.

Local work stays free of TensorFlow, whose import takes seconds.
"""

import contextlib
import glob
import gzip
import hashlib
import io
import json
import lzma
import math
import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from configure.errors import UserError
from configure.json_text import parse_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

STDIN = "-"
# A line beyond it is not read whole: it would be no line of text.
MAX_LINE_BYTES = 2**25
# Nor is a text read whole that is larger than this.
MAX_TEXT_BYTES = 2**30
# What reading a packed file raises that is damaged or cut short.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# What turns a file in the commonest other encoding into UTF-8.
ICONV = "iconv -f ISO-8859-1 -t UTF-8"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def is_remote(path: str) -> bool:
    """Whether only tf.io.gfile can reach the path (gs://, hdfs://, ...)."""
    return "://" in path


def open_file(path: str, mode: str) -> IO[bytes]:
    """Opens in a binary mode ("rb" or "wb")."""
    if not is_remote(path):
        return open(path, mode)
    file = _gfile().GFile(path, mode)
    return io.BufferedReader(_Raw(file)) if mode == "rb" else file


class _Raw(io.RawIOBase):
    """A GFile as Python's readers want it: its lines have no limit."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.tell = file.tell

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        found = self._file.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._file.seek(offset, whence)
        return self._file.tell()


def open_unpacked(path: str) -> IO[bytes]:
    """Opens for reading what the file holds, unpacked if it is .gz or .xz."""
    raw = open_file(path, "rb")
    if path.endswith(".gz"):
        return gzip.GzipFile(fileobj=raw)
    return lzma.LZMAFile(raw) if path.endswith(".xz") else raw


def list_directory(path: str) -> list[str]:
    """Names in a directory, sorted, without trailing slashes."""
    if is_remote(path):
        return sorted(n.rstrip("/") for n in _gfile().listdir(path))
    return sorted(os.listdir(path))


def spelled_alike(patterns: str) -> list[str]:
    """Patterns between commas, the same for every spelling of their folders.

    A folder or file that is there stands for itself, whatever is in its name.
    """
    spelled = []
    for pattern in map(str.strip, patterns.split(",")):
        folder, name = os.path.split(pattern)
        if pattern and not is_remote(pattern):
            is_there = os.path.isdir(folder or ".")
            folder = os.path.realpath(folder)
            name = glob.escape(name) if os.path.isfile(pattern) else name
            folder = glob.escape(folder) if is_there else folder
            pattern = os.path.join(folder, name)
        spelled.append(pattern)
    return spelled


def matching(
    patterns: str, but_folders: bool = False
) -> tuple[list[str], list[str]]:
    """Files by patterns between commas: those that hold something, and not."""
    paths: list[str] = []
    for pattern in spelled_alike(patterns):
        find = _gfile().glob if is_remote(pattern) else glob.glob
        paths += sorted(find(pattern))
    paths = list(dict.fromkeys(paths))  # Two patterns may find one file.
    for path in paths:
        if not exists(path):
            raise UserError(f"{path}: a link to what is not there; remove it.")
    if but_folders:
        paths = [path for path in paths if not is_directory(path)]
    if folder := next(filter(os.path.isdir, paths), None):
        raise UserError(
            f"{folder}: is a directory; expected files, such as {folder}/*"
        )
    full = [path for path in paths if file_size(path)]
    return full, [path for path in paths if path not in set(full)]


def is_directory(path: str) -> bool:
    """Whether the path is a directory."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def exists(path: str) -> bool:
    """Whether something is there."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def file_size(path: str) -> int:
    """Size in bytes."""
    if is_remote(path):
        return _gfile().stat(path).length
    return os.path.getsize(path)


def make_directory(path: str) -> None:
    """Creates a directory and its parents; fine if it exists."""
    if is_remote(path):
        _gfile().makedirs(path)
    else:
        os.makedirs(path, exist_ok=True)


def rename(source: str, target: str) -> None:
    """Renames, replacing the target."""
    if is_remote(source):
        _gfile().rename(source, target, overwrite=True)
    else:
        os.replace(source, target)


def remove(path: str) -> None:
    """Deletes one file."""
    if is_remote(path):
        _gfile().remove(path)
    else:
        os.remove(path)


_SPARE_FILES = 128


def allow_open_files(count: int) -> None:
    """Makes room for open files where the system has a limit on them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    # Where the system refuses, opening the files will say so itself.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# Files that are whole or absent.


def _failures() -> tuple[type[Exception], ...]:
    """What a file system raises; remote ones only once TensorFlow is there."""
    tf = sys.modules.get("tensorflow")
    return (OSError, tf.errors.OpError) if tf else (OSError,)


def _open_alone(path: str) -> IO[bytes]:
    """Open a file for bytes, empty, once no other process writes it."""
    if is_remote(path) or fcntl is None:
        return open_file(path, "wb")
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "wb")
        with contextlib.suppress(OSError):  # The file system has no locks.
            fcntl.flock(file, fcntl.LOCK_EX)
        # The writer before this one may have renamed or removed the file.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                file.truncate(0)
                return file
        file.close()


def own_part(path: str) -> str:
    """Return the path of this process's unfinished version of a file.

    The unfinished versions that ended processes left are removed. Raises a
    UserError that names the process if another one is writing the file.
    """
    if is_remote(path) or fcntl is None:
        return f"{path}.part"
    for part in glob.glob(f"{glob.escape(path)}.*.part"):
        process = part.removeprefix(f"{path}.").removesuffix(".part")
        if not process.isdecimal():
            continue
        try:
            file = os.open(part, os.O_RDONLY)
        except FileNotFoundError:  # That process has finished meanwhile.
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.isdir(part):
                shutil.rmtree(part, ignore_errors=True)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(part)
        except BlockingIOError:
            raise UserError(
                f"{path}: process {process} is writing it ({part})."
                " Wait for it, stop it, or choose another name."
            ) from None
        except OSError:  # The file system has no locks: leave it.
            continue
        finally:
            os.close(file)
    return f"{path}.{os.getpid()}.part"


@contextlib.contextmanager
def part_folder(path: str, place: str) -> Iterator[str]:
    """Make a folder in `place` for the unfinished version of a local folder.

    It is removed at the end; the folders of ended processes at the start.
    """
    name = os.path.basename(os.path.abspath(path))
    os.mkdir(part := own_part(os.path.join(place, name)))
    folder = os.open(part, os.O_RDONLY)
    try:
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_EX)
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(folder)


@contextlib.contextmanager
def atomic_file(
    path: str, temporary: str | None = None, hint: str = "", keep: bool = False
) -> Iterator[IO[bytes]]:
    """Open a file for bytes that gets its name once it is complete.

    Makes the directory. An error leaves the earlier file in place. A second
    process that opens the same temporary file waits for the first.

    Args:
      path: the file's path once it is complete.
      temporary: its path until then. None: `path`.tmp.
      hint: what the error for a file that cannot be written adds.
      keep: whether `temporary` stays after an error.
    """
    temporary = temporary or f"{path}.tmp"
    failures = _failures()
    try:
        if is_directory(path):
            raise IsADirectoryError("is a directory; expected a file's name")
        make_directory(os.path.dirname(path) or ".")
        file = _open_alone(temporary)
    except failures as error:
        raise _cannot_write(path, error, hint) from error
    try:
        with file:
            yield file
            if not is_remote(path):
                # Renamed while it is locked, so that no other process opens
                # the finished file by its temporary name.
                file.flush()
                rename(temporary, path)
        if is_remote(path):
            rename(temporary, path)
    except BaseException as error:
        if not keep:
            with contextlib.suppress(*failures):
                remove(temporary)
        # Errors of other files, which name them, and of pipes are the caller's.
        other = getattr(error, "filename", None) not in (None, temporary)
        if isinstance(error, failures) and not (
            other or isinstance(error, BrokenPipeError)
        ):
            raise _cannot_write(path, error, hint) from error
        raise


def write_atomically(
    path: str,
    content: str | bytes,
    temporary: str | None = None,
    hint: str = "",
) -> None:
    """Writes a file that is whole or absent; see `atomic_file`."""
    if isinstance(content, str):
        content = content.encode()
    with atomic_file(path, temporary, hint) as file:
        file.write(content)


def _cannot_write(path: str, error: Exception, hint: str) -> UserError:
    reason = getattr(error, "strerror", None) or str(error)
    hint = f" {hint}" if hint else ""
    return UserError(f"{path}: cannot be written: {reason}.{hint}")


# Digests: what nothing else in a model's folder tells to be damaged.

DIGESTS = "digests.json"
# A vocabulary is mere text, and safetensors and the graph of a SavedModel have
# no checksum. TensorFlow checks those of its checkpoints at every read;
# settings are for people to change.
_DIGESTED = re.compile(
    r"vocab\.txt|tokenizer\.json|tokenizer_config\.json|token_counts\.json"
    r"|.*\.safetensors|saved_model\.pb"
)


def digest_of(path: str) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    return {"bytes": file_size(path), "sha256": sha256_of(path)}


def write_digests(folder: str) -> None:
    """Writes those of a model's folder; the last step of completing it."""
    names = list(filter(_DIGESTED.fullmatch, list_directory(folder)))
    if "vocab.txt" in names and "tokenizer.json" in names:
        # They are transformers' then, for people to change.
        names = [n for n in names if not n.startswith("tokenizer")]
    digests = {name: digest_of(os.path.join(folder, name)) for name in names}
    path = os.path.join(folder, DIGESTS)
    write_atomically(path, json.dumps(digests, indent=2) + "\n")


def check_digest(path: str) -> None:
    """Refuses a file that is not what the digests beside it, if any, say."""
    folder, name = os.path.split(path)
    listing = os.path.join(folder, DIGESTS)
    if not exists(listing):
        return
    digests = read_json(listing)
    for listed, wanted in digests.items():
        there = os.path.join(folder, listed)
        if not exists(there):
            found: Any = "missing"
        elif listed == name and (found := digest_of(there)) != wanted:
            found = "another file, or damaged"
        else:
            continue
        raise UserError(
            f"{there}: {found}; {listing} says what belongs here. Copy the"
            f" folder again; if the change is meant, remove {listing}."
        )


# Lines of users' files.


class Line(NamedTuple):
    """A line of a text file, or what is wrong with it."""

    number: int  # from 1
    text: str | None  # without its end; None where there is a problem
    found: str = ""  # with a problem, what stands there; else ""
    expected: str = ""  # with a problem, what should stand there; else ""


def check_readable(path: str) -> None:
    """Raises a UserError unless a file, or standard input, can be read."""
    if path == STDIN:
        return
    if not exists(path):
        raise UserError(f"{path}: no such file")
    if is_directory(path):
        raise UserError(f"{path}: is a directory, expected a file")


def read_bytes(path: str) -> bytes:
    """A whole file."""
    return b"".join(_blocks(path, -1))


def sha256_of(path: str) -> str:
    """The SHA-256 of a file's bytes, as `sha256sum` prints it."""
    digest = hashlib.sha256()
    for block in _blocks(path, 1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: str, size: int) -> Iterator[bytes]:
    """A file's bytes, so many at once; -1: all."""
    check_readable(path)
    try:
        with open_file(path, "rb") as file:
            while block := file.read(size):
                yield block
    except _failures() as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path}: cannot be read: {reason}") from error


def _refuse_utf_16(path: str, start: bytes) -> None:
    """Raise a UserError if a text begins as UTF-16, which Excel writes."""
    is_marked = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if is_marked or (len(start) > 3 and 3 * start.count(0) > len(start)):
        raise UserError(
            f"{path}:1: found UTF-16, {start[:8]!r}; expected text in UTF-8."
            " Convert the file (iconv -f UTF-16 -t UTF-8 FILE)."
        )


def read_text(path: str) -> str:
    """A whole file in UTF-8."""
    check_readable(path)
    if file_size(path) > MAX_TEXT_BYTES:
        raise UserError(
            f"{path}: {file_size(path):,} bytes; expected a text of at most"
            f" {MAX_TEXT_BYTES:,}."
        )
    raw = read_bytes(path)
    _refuse_utf_16(path, raw[:1024])
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}:{line}: byte {error.start} is not UTF-8 ({error.reason})"
        ) from error


def png(figure: Any) -> bytes:
    """The file of a picture of matplotlib's."""
    packed = io.BytesIO()
    figure.savefig(packed, format="png", dpi=110)
    return packed.getvalue()


def without_nan(value: Any) -> Any:
    """JSON has no NaN: None stands for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_json(path: str) -> dict[str, Any]:
    """The JSON object that a file holds."""
    return parse_json(read_text(path), path)


class LineReader:
    r"""The lines of a file (unpacked) or of standard input ("-").

    Only "\n" ends a line. One line at a time is in memory. A problem is
    handed on, so that the caller can count it and go on.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.done = 0  # bytes read

    def size(self) -> int | None:
        """Bytes in all; None where that is not known."""
        if self.path == STDIN or self.path.endswith((".gz", ".xz")):
            return None
        return file_size(self.path) or None

    def __iter__(self) -> Iterator[Line]:
        """Yields the lines in order."""
        check_readable(self.path)
        if self.path == STDIN:
            yield from self._lines(sys.stdin.buffer)
            return
        with open_unpacked(self.path) as file:
            try:
                yield from self._lines(file)
            except DAMAGED as error:
                raise UserError(
                    f"{self.path}: cannot be unpacked: {error}"
                ) from error

    def texts(self) -> Iterator[str]:
        """Yields the lines' texts; a problem is a UserError."""
        for line in self:
            if line.text is None:
                raise UserError(
                    f"{self.path}:{line.number}: found {shortened(line.found)};"
                    f" expected {line.expected}."
                )
            yield line.text

    def _lines(self, file: IO[bytes]) -> Iterator[Line]:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            self.done += len(raw)
            if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
                while part := file.readline(MAX_LINE_BYTES):
                    self.done += len(part)
                    if part.endswith(b"\n"):
                        break
                found = f"more than {MAX_LINE_BYTES:,} bytes"
                yield Line(number, None, found, "a line")
                continue
            if number == 1:
                _refuse_utf_16(self.path, raw)
                raw = raw.removeprefix(_BYTE_ORDER_MARK)
            raw = raw.rstrip(b"\r\n")
            try:
                yield Line(number, raw.decode())
            except UnicodeDecodeError:
                expected = f"text in UTF-8 ({ICONV} converts Latin-1)"
                yield Line(number, None, repr(raw), expected)


def shortened(found: object, most: int = 80) -> str:
    """What stands in a file, for a message: at most so many characters."""
    text = found if isinstance(found, str) else repr(found)
    return text if len(text) <= most else text[: most - 3] + "..."

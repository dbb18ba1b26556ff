# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Digests of the files that runs write, without the times in the files."""

import contextlib
import glob
import hashlib
import os
import pathlib
import pickle
import re

import numpy as np
import tensorflow as tf

TIMES = r'"(\w*seconds\w*|\w+_per_second|time|\w+_time|ended)": [^,}\n]+'


def digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


def fingerprint(folder):
    """Return the digest of each file in a folder, without times, by path."""
    digests = {}
    for path in sorted(glob.glob(f"{folder}/**/*", recursive=True)):
        if os.path.isdir(path) or re.search(r"\.data-|tfevents|\.lock$", path):
            continue
        content = pathlib.Path(path).read_bytes()
        # Equal values may be pickled differently, so their text is compared.
        if path.endswith(".pkl"):
            content = repr(pickle.loads(content)).encode()
        elif path.endswith(".index"):
            content = tensors_of(path.removesuffix(".index"))
        elif path.endswith((".json", ".jsonl")):
            lines = re.sub(
                TIMES, "", content.decode(errors="replace")
            ).splitlines()
            # The jobs of a builder may end in any order, so lines are sorted.
            content = "".join(sorted(lines)).encode()
        digests[path] = digest(content)
    return digests


def tensors_of(prefix):
    """Return the bytes of all arrays of a checkpoint."""
    reader, parts = tf.train.load_checkpoint(prefix), []
    for name in sorted(reader.get_variable_to_shape_map()):
        if not re.search("save_counter|OBJECT_GRAPH", name):
            # Reading the state of an iterator raises this error.
            with contextlib.suppress(tf.errors.InternalError):
                value = np.asarray(reader.get_tensor(name))
                is_text = value.dtype == object
                content = repr(value).encode() if is_text else value.tobytes()
                parts += [f"{name} {value.dtype}".encode(), content]
    return b"".join(parts)

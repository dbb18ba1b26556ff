# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records beside the original's own, shard by shard and in order."""

import shutil
import subprocess
import sys

import pytest
import tensorflow as tf

from electra_tf.data.example_writer import read_records

PROGRAM = "build_{}pretraining_dataset"


def records_in(folder):
    """Shard's name -> its examples; the order of features is not fixed."""
    return {
        path.name: [
            tf.train.Example.FromString(record).SerializeToString(
                deterministic=True
            )
            for record in read_records(str(path))
        ]
        for path in folder.glob("pretrain_tfrecords/*tfrecord*")
    }


@pytest.mark.parametrize(("kind", "processes"), [("", 3), ("openwebtext_", 2)])
def test_records_equal_the_originals_own(
    original, reference_dir, request, tmp_path, kind, processes
):
    def paths(folder):
        if kind:
            return {"data_dir": str(folder)}
        return {
            "corpus_dir": str(reference_dir / "golden/pretrain_data/corpus"),
            "vocab_file": str(folder / "vocab.txt"),
            "output_dir": str(folder / "pretrain_tfrecords"),
        }

    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        archives = reference_dir / "data/openwebtext_like"
        shutil.copytree(archives, folder / "openwebtext")
        shutil.copy(reference_dir / "data/vocab/vocab.txt", folder)
    (theirs / "pretrain_tfrecords").mkdir()
    program = PROGRAM.format(kind)
    common = {"max_seq_length": 64, "num_processes": processes, "seed": 11}
    text = {"do_lower_case": True, "strip_accents": True}
    text["blanks_separate_docs"] = True  # Of archives never.
    flags = common | text | paths(theirs)
    original(("build", {"program": program, **flags}))
    flags = [f"--{n}={v}" for n, v in (common | paths(ours)).items()]
    script = f"{request.config.rootpath}/{program}.py"
    subprocess.run([sys.executable, script, *flags], check=True)
    found, expected = records_in(ours), records_in(theirs)
    print(f"{program}: {sum(map(len, expected.values()))} examples")
    assert sum(map(len, expected.values())) > 1000 == len(found)
    assert found == expected

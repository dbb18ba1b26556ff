# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The casing of a build, and the letters that it costs."""

import json

import pytest

from electra_tf.text.casing import CASING_FILE
from electra_tf.text.changed_letters import sum_of_scripts
from tests.conftest import refused

HINDI = "".join(f"{i} किताब की दुकान में गया था\n" for i in range(300))


@pytest.fixture
def casing_file(tmp_path):
    """Return a function that writes the file next to the vocabulary."""
    path = tmp_path / CASING_FILE

    def write(**fields):
        path.write_text(json.dumps(fields))
        return str(path)

    return write


def switches(manifest):
    settings = manifest["settings"]
    return settings["do_lower_case"], settings["strip_accents"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (True, True)),
        ({"do_lower_case": False}, (False, False)),
        ({"do_lower_case": True, "strip_accents": False}, (True, False)),
    ],
)
def test_records_have_the_casing_of_their_vocabulary(
    build, casing_file, fields, expected
):
    casing_file(**fields)
    assert switches(build("out")) == expected


def test_a_flag_that_contradicts_the_vocabulary_is_refused(build, casing_file):
    path = casing_file(do_lower_case=False)
    message = f"--do_lower_case is true, but do_lower_case is false in {path}"
    refused(message, build, "out", do_lower_case=True)


@pytest.fixture
def hindi(corpus_dir):
    for path in corpus_dir.iterdir():
        path.write_text(HINDI + path.read_text())


def test_the_report_names_the_scripts_that_lose_letters(build, hindi):
    build("out")
    (warning,) = [line for line in build.printed if "Devanagari" in line]
    assert warning.startswith("WARNING: Stripping accents changes ")
    assert "Pass --no-strip-accents to build_vocab" in warning
    build("kept", do_strip_accents=False)
    assert not [line for line in build.printed if "Devanagari" in line]


@pytest.mark.parametrize("at_most", [1 << 20, 20_000])
def test_the_letters_do_not_depend_on_processes(
    build, hindi, monkeypatch, at_most
):
    monkeypatch.setattr("electra_tf.data.jobs._BYTES_COUNTED", at_most)
    scripts = []
    for number in (1, 2):
        manifest = build(f"out{number}", draws="document", num_processes=number)
        jobs = manifest["jobs"].values()
        scripts.append(sum_of_scripts(job["scripts"] for job in jobs))
    assert scripts[0] == scripts[1]
    assert scripts[0]["Devanagari"]["changed"] > 0

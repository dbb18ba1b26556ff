# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tags of words and spans of words."""

import json

import hypothesis
import hypothesis.strategies as st
import pytest

from electra_tf.text import words


def test_spans_equal_the_originals(golden_dir):
    path = golden_dir / "finetune_features" / "qa_metrics.json"
    recorded = json.loads(path.read_text())["classification_and_tagging"]
    cases = recorded["tagging_span_functions"]
    assert cases
    for case in cases:
        found = words.read_spans(case["tags"])
        assert found == [tuple(s) for s in case["spans"]], case["tags"]
        written = words.write_tags(found, len(case["tags"]))
        assert written == case["retagged_BIOES"], case["tags"]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([], []),
        (["O", "O"], []),
        (["B", "I", "O", "B"], [(0, 1, ""), (3, 3, "")]),
        (["B-x-y", "I-x-y"], [(0, 1, "x-y")]),
        (["I-A", "I-B"], [(0, 1, "B")]),
        (["B-A", "L-A", "U-A"], [(0, 1, "A"), (2, 2, "A")]),
        (["S-A", "S-A"], [(0, 0, "A"), (1, 1, "A")]),
    ],
)
def test_spans_of_all_schemes_are_found(tags, expected):
    assert words.read_spans(tags) == expected


def test_a_change_of_type_starts_a_span_where_asked():
    tags = ["I-A", "I-B", "I-B", "O"]
    found = words.read_spans(tags, type_change_starts_span=True)
    assert found == [(0, 0, "A"), (1, 2, "B")]


@pytest.mark.parametrize("tag", ["NN", "X-A", "", "O-A", "BI-A", "b-A"])
def test_what_is_no_tag_is_refused(tag):
    with pytest.raises(ValueError, match="no tag"):
        words.read_spans([tag])


@hypothesis.given(
    st.lists(st.sampled_from(["O", "B-A", "I-A", "S-B", "E-A", "B", "I"]))
)
def test_written_tags_mark_the_same_spans(tags):
    found = words.read_spans(tags)
    written = words.write_tags(found, len(tags))
    assert words.read_spans(written) == found

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records have the bytes that TensorFlow writes, and damage is found."""

import hypothesis
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from electra_tf.data.tfrecords import (
    FEATURE_NAMES,
    BrokenRecordError,
    ExampleEncoder,
    decode_example,
    frame_record,
    read_records,
)

LENGTH = 24
IDS = st.lists(st.integers(0, 29_999), min_size=1, max_size=10)
ENCODER = ExampleEncoder(LENGTH, 101, 102, 30_000)


def _plain_example(first, second):
    ids = [101, *first, 102]
    segments = [0] * len(ids)
    if second:
        ids += [*second, 102]
        segments += [1] * (len(second) + 1)
    example = tf.train.Example()
    columns = (ids, [1] * len(ids), segments)
    for name, values in zip(FEATURE_NAMES, columns, strict=True):
        values = values + [0] * (LENGTH - len(values))
        example.features.feature[name].int64_list.value.extend(values)
    return example


@hypothesis.given(IDS, st.one_of(st.just([]), IDS))
def test_bytes_equal_the_deterministic_protocol_buffer(first, second):
    expected = _plain_example(first, second)
    payload = ENCODER.encode(first, second)
    assert payload == expected.SerializeToString(deterministic=True)


# Other programs write the features in any order.
@pytest.mark.parametrize("deterministic", [True, False])
@hypothesis.given(IDS, st.one_of(st.just([]), IDS))
def test_an_example_is_decoded(deterministic, first, second):
    example = _plain_example(first, second)
    payload = example.SerializeToString(deterministic=deterministic)
    features = example.features.feature
    assert decode_example(payload) == {
        name: list(features[name].int64_list.value) for name in FEATURE_NAMES
    }


@hypothesis.given(st.lists(st.binary(max_size=70), min_size=1))
def test_framing_equals_the_tensorflow_writer(tmp_path_factory, payloads):
    path = str(tmp_path_factory.mktemp("records") / "written")
    with tf.io.TFRecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)
    with open(path, "rb") as file:
        assert b"".join(map(frame_record, payloads)) == file.read()
    assert list(read_records(path)) == payloads


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_broken_files_are_named_with_record_and_byte(tmp_path, cut):
    path = tmp_path / "records"
    framed = bytearray().join(map(frame_record, [b"a" * 50, b"b" * 50]))
    path.write_bytes(framed[:-cut])
    with pytest.raises(BrokenRecordError, match=r"record 1 at byte 66"):
        list(read_records(str(path)))


def test_a_changed_byte_is_found(tmp_path):
    path = tmp_path / "records"
    framed = bytearray().join(map(frame_record, [b"a" * 50, b"b" * 50]))
    framed[30] ^= 1
    path.write_bytes(framed)
    with pytest.raises(BrokenRecordError, match="corrupt payload"):
        list(read_records(str(path)))

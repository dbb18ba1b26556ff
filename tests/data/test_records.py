# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import hypothesis
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from electra_tf.data import example_writer

LENGTH = 24
IDS = st.lists(st.integers(0, 29_999), min_size=1, max_size=10)
ENCODER = example_writer.ExampleEncoder(LENGTH, 101, 102, 30_000)


def _plain_example(first, second):
    ids = [101, *first, 102]
    segments = [0] * len(ids)
    if second:
        ids += [*second, 102]
        segments += [1] * (len(second) + 1)
    mask = [1] * len(ids)
    features = {
        name: tf.train.Feature(
            int64_list=tf.train.Int64List(
                value=values + [0] * (LENGTH - len(values))
            )
        )
        for name, values in (
            ("input_ids", ids),
            ("input_mask", mask),
            ("segment_ids", segments),
        )
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


@hypothesis.given(IDS, st.one_of(st.just([]), IDS))
def test_bytes_equal_the_deterministic_protocol_buffer(first, second):
    expected = _plain_example(first, second)
    payload = ENCODER.encode(first, second)
    assert payload == expected.SerializeToString(deterministic=True)
    features = expected.features.feature
    # Others write the features in any order.
    for example in (payload, expected.SerializeToString()):
        assert example_writer.decode_example(example) == {
            name: list(features[name].int64_list.value)
            for name in example_writer.FEATURE_NAMES
        }


@hypothesis.given(st.lists(st.binary(max_size=70), min_size=1))
def test_framing_equals_the_tensorflow_writer(tmp_path_factory, payloads):
    path = str(tmp_path_factory.mktemp("records") / "written")
    with tf.io.TFRecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)
    with open(path, "rb") as file:
        assert (
            b"".join(map(example_writer.frame_record, payloads)) == file.read()
        )
    assert list(example_writer.read_records(path)) == payloads


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_broken_files_are_named_with_record_and_byte(tmp_path, cut):
    path = tmp_path / "records"
    framed = bytearray().join(
        map(example_writer.frame_record, [b"a" * 50, b"b" * 50])
    )
    path.write_bytes(framed[:-cut])
    with pytest.raises(
        example_writer.BrokenRecordError, match=r"record 1 at byte 66"
    ):
        list(example_writer.read_records(str(path)))
    framed[30] ^= 1
    path.write_bytes(framed)
    with pytest.raises(
        example_writer.BrokenRecordError, match="damaged payload"
    ):
        list(example_writer.read_records(str(path)))

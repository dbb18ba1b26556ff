# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Features and their tf.Example form."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.feature_spec import (
    FeatureSpec,
    decode_example,
    encode_example,
)

SPECS = [
    FeatureSpec("whole", [3]),
    FeatureSpec("number", [], is_int_feature=False),
    FeatureSpec("absent", [2]),
]


@pytest.mark.parametrize(
    "number", [2, 2.5, np.float32(2.5), np.array(2.5), [2.5]]
)
def test_values_of_any_kind_come_back(number):
    values = {"whole": [1, True, np.int64(7)], "number": number}
    record = encode_example(SPECS, values).SerializeToString()
    found = decode_example(SPECS, tf.constant(record))
    assert list(found) == ["whole", "number", "absent"]
    assert found["whole"].numpy().tolist() == [1, 1, 7]
    assert found["whole"].dtype == tf.int32
    assert found["number"].numpy() == np.float32(np.ravel(number)[0])
    assert found["absent"].numpy().tolist() == [0, 0]
    nothing = encode_example(SPECS, {}).SerializeToString()
    found = decode_example(SPECS, tf.constant([record, nothing]))
    assert found["whole"].numpy().tolist() == [[1, 1, 7], [0, 0, 0]]
    assert found["number"].numpy()[1] == 0.0


def test_unknown_names_and_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="Unknown feature other"):
        encode_example(SPECS, {"other": 1})
    with pytest.raises(ValueError, match="whole has 2 values"):
        encode_example(SPECS, {"whole": [1, 2]})

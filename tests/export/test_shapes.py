# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports of pre-trained models: any batch, any length, any text.

That the modules are right in Python is for `test_saved_models` and
`test_encoder`; here another process gives what they give, at every shape.
"""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.encoder import EncoderModule
from electra_tf.export.pretrained_heads import (
    ElectricModule,
    FillMaskModule,
    ReplacedTokensModule,
)
from electra_tf.export.saved_model import export
from electra_tf.prediction.loading import load_pretrained

SHAPES = [(1, 1), (1, 512), (2, 2), (7, 33), (64, 1), (64, 48), (16, 128)]
TEXTS = [
    b"The cat, the dog and the ing.",
    b"",
    b"\xff\xfe the \xc3 was \xe2\x82",
    b"a" * 1000,
    "Übermaß \u4e2d\u6587 \U0001f600 of".encode(),
    b"the of and to " * 500,
    b"the [MASK] of [MASK]",
    b"\x00a\x00\x01b",
]
ELECTRIC = {"electric_objective": True, "electra_objective": False}
MODULES = {
    "encoder": (EncoderModule, {}),
    "replaced_tokens": (ReplacedTokensModule, {}),
    "fill_mask": (FillMaskModule, {}),
    "electric": (ElectricModule, ELECTRIC),
}


def _ids(batch, length, seed):
    random = np.random.default_rng(seed)
    ids = random.integers(105, 200, [batch, length]).astype(np.int32)
    ids[random.random(ids.shape) < 0.1] = 103  # [MASK]
    sizes = random.integers(0, length + 1, batch)
    sizes[0] = length
    mask = (np.arange(length) < sizes[:, None]).astype(np.int32)
    segments = mask * (np.arange(length) >= sizes[:, None] // 2)
    return {
        "input_ids": ids * mask,
        "input_mask": mask,
        "segment_ids": segments.astype(np.int32),
    }


def _compare(got, wanted):
    assert set(got) == set(wanted)
    for name, tensor in wanted.items():
        value = tensor.numpy()
        assert got[name].shape == value.shape, name
        if value.dtype.kind == "f":
            bound = 1e-5 * max(1.0, np.abs(value).max(initial=0.0))
            np.testing.assert_allclose(
                got[name], value, rtol=0, atol=bound, err_msg=name
            )
        else:
            np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize("name", MODULES)
def test_another_process_gives_the_same_at_every_shape(
    name, pretrained_folder, ask_elsewhere, tmp_path
):
    make, hparams = MODULES[name]
    module = make(load_pretrained(pretrained_folder(**hparams)))
    folder = export(module, str(tmp_path / name))
    ids = [_ids(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    texts = [(TEXTS * 8)[:size] for size in (1, len(TEXTS), 64)]
    answers = ask_elsewhere(
        folder,
        [("serving_default", features) for features in ids]
        + [("serve_text", {"text": batch}) for batch in texts],
    )
    for features, got in zip(ids, answers, strict=False):
        tensors = [tf.constant(features[n]) for n in features]
        _compare(got, module.compute(module.complete(*tensors)))
    serve_text = module.signatures()["serve_text"]
    for batch, got in zip(texts, answers[len(ids) :], strict=True):
        _compare(got, serve_text(tf.constant(batch)))

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures every room's tests share."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"

# Before TensorFlow is imported anywhere: tests need no accelerator, keep its
# start-up chatter out of the output, and leave cores to their neighbours.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "2")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")
# The kernels users train with; see electra_tf/__init__.py.
import electra_tf  # noqa: E402

# All tests of a process compute alike, whichever room is imported first.
electra_tf.leave_kernels_to_tensorflow = lambda: None

try:
    import hypothesis
except ImportError:  # the property tests skip themselves
    pass
else:
    hypothesis.settings.register_profile(
        "default", deadline=None, max_examples=50
    )
    hypothesis.settings.register_profile(
        "ci", deadline=None, max_examples=100, derandomize=True
    )
    hypothesis.settings.load_profile("ci" if "CI" in os.environ else "default")


def _reference() -> pathlib.Path:
    default = ROOT.parent / "shared"
    return pathlib.Path(os.environ.get("ELECTRA_TF_REFERENCE", default))


@pytest.fixture(scope="session")
def reference_dir() -> pathlib.Path:
    """The reference data's directory; skips where it is absent."""
    path = _reference()
    if not (path / "golden").is_dir():
        pytest.skip(
            f"no reference data at {path} (set ELECTRA_TF_REFERENCE to the"
            " directory that holds golden/ and data/)"
        )
    return path


@pytest.fixture(scope="session")
def golden_dir(reference_dir: pathlib.Path) -> pathlib.Path:
    """Numbers recorded from the original implementation."""
    return reference_dir / "golden"


@pytest.fixture(scope="session")
def tiny_vocab() -> str:
    """Path of a 200-token WordPiece vocabulary kept in the repository."""
    return str(FIXTURES / "vocab_200.txt")


@pytest.fixture
def tiny_config(tmp_path, tiny_vocab):
    """A factory of tiny `PretrainingConfig`s: `tiny_config(mask_prob=0.3)`."""

    def make(model_name="tiny", data_dir=None, **hparams):
        from configure.pretraining import PretrainingConfig

        settings = {
            "vocab_file": tiny_vocab,
            "vocab_size": 200,
            "embedding_size": 8,
            "max_seq_length": 16,
            "train_batch_size": 4,
            "eval_batch_size": 4,
            "num_train_steps": 20,
            "num_warmup_steps": 4,
            "num_eval_steps": 2,
            "model_hparam_overrides": {
                "hidden_size": 16,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "max_position_embeddings": 32,
            },
        }
        settings.update(hparams)
        return PretrainingConfig.create(
            model_name, str(data_dir or tmp_path), **settings
        )

    return make

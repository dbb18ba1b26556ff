# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exported step trains under JAX as it does under TensorFlow."""

import json

import numpy as np
import pytest

from electra_tf.checkpoints.formats import open_weights
from tests.conftest import ROOT, read_json

pytest.importorskip("jax", reason="only the exported step needs JAX")
pytestmark = pytest.mark.slow
SCRIPT = ROOT / "benchmarks" / "accelerator.py"
STEPS = 20


@pytest.fixture(scope="module")
def exported(data_dir, tiny_pretraining, tmp_path_factory, run_python):
    """Return the folder of a tiny model's step with dropout."""
    folder = tmp_path_factory.mktemp("accelerator") / "exported"
    hparams = {**tiny_pretraining, "num_train_steps": 2 * STEPS}
    records = data_dir / "pretrain_tfrecords" / "pretrain_data.tfrecord*"
    run_python(
        SCRIPT,
        "export",
        folder,
        "--batch=4",
        "--length=16",
        f"--vocab_file={hparams['vocab_file']}",
        f"--records={records}",
        f"--hparams={json.dumps(hparams)}",
        f"--check={STEPS}",
    )
    return folder


@pytest.fixture(scope="module")
def trained(exported, run_python):
    """Return the folder of weights that the program has trained."""
    folder = exported.parent / "trained"
    run_python(
        SCRIPT,
        "run",
        exported,
        "--check",
        f"--steps={STEPS}",
        f"--output={folder}",
        f"--json={folder}.json",
    )
    return folder


def test_the_numbers_of_twenty_steps_are_tensorflows(trained):
    check = read_json(trained.parent / "trained.json")["check"]
    assert check["steps"] == STEPS
    assert {"total_loss", "replaced_tokens"} <= set(check["differences"])
    far = {n: d for n, d in check["differences"].items() if not d < 1e-5}
    assert far == {}


def test_the_program_has_no_dynamic_shape_and_few_arguments(exported):
    import jax.export

    program = jax.export.deserialize((exported / "step.jaxexport").read_bytes())
    text = program.mlir_module()
    assert "set_dimension_size" not in text
    assert "tensor<?" not in text
    assert len(program.in_avals) < 20


@pytest.fixture(scope="module")
def model_dir(exported, trained, run_python):
    """Return the model directory of the trained weights."""
    path = trained.parent / "models" / "home"
    run_python(SCRIPT, "home", exported, trained, path)
    return path


def test_the_checkpoint_has_the_trained_weights_and_slots(trained, model_dir):
    weights = dict(open_weights(str(model_dir), with_training_state=True))
    with np.load(trained / "weights.npz") as stored:
        arrays = {n: a for n, a in stored.items() if "constant_" not in n}
    assert weights.keys() == arrays.keys()
    assert weights["global_step"] == STEPS
    assert any(name.endswith("/adam_v") for name in weights)
    different = [n for n in arrays if not np.array_equal(weights[n], arrays[n])]
    assert different == []


def test_weights_brought_home_are_evaluated(model_dir, data_dir, run_python):
    run_python(
        ROOT / "run_pretraining.py",
        f"--data-dir={model_dir.parent.parent}",
        "--model-name=home",
        "--do_train=false",
        "--do_eval=true",
        f"--pretrain_tfrecords={data_dir}/pretrain_tfrecords/pretrain_data*",
        f"--eval_tfrecords={data_dir}/pretrain_tfrecords/eval_data*",
    )
    result = read_json(model_dir / "results" / "unsup_results.json")
    assert result["step"] == STEPS
    assert 0.0 < result["metrics"]["disc_loss"] < 1.0


def test_a_folder_that_exists_is_not_replaced(exported, trained, run_python):
    arguments = ["--steps=1", f"--output={trained}"]
    done = run_python(SCRIPT, "run", exported, *arguments, status=1)
    assert f"{trained} exists; expected a new folder" in done.stderr


def test_more_steps_than_the_schedule_has_are_refused(exported, run_python):
    arguments = ["--steps=41", f"--output={exported.parent / 'more'}"]
    done = run_python(SCRIPT, "run", exported, *arguments, status=1)
    assert "--steps=41: the exported schedule has 40 steps" in done.stderr

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`PretrainingModel.fit` compared with the training loop."""

import runpy

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from configure.errors import UserError
from electra_tf.keras import Encoder, Tokenizer
from electra_tf.modeling.precision import LossScale
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.pretraining.model import PretrainingModel
from tests.conftest import ROOT, differences, marked_heavy, refused
from tests.pretraining.conftest import SIZES, batches, make_loop

STEPS = 4
ONE_BLOCK = SIZES | {"num_hidden_layers": 1}


def dataset(sized=True):
    (features,) = batches(1, 4 * STEPS, shortest=6)
    rows = tf.data.Dataset.from_tensor_slices(features)
    return rows.batch(4, drop_remainder=sized)


@pytest.mark.parametrize(
    "hparams",
    [
        {},
        {
            "objective": "electric",
            "gradient_accumulation_steps": 2,
            "mixed_precision": "fp16",
        },
        *marked_heavy(
            {
                "objective": "all_tokens_mlm",
                "optimizer": "lamb",
                "adam_beta_1": 0.7,
                "adam_epsilon": 1e-4,
            }
        ),
        {
            "training_schedule": "adversarial",
            "embedding_sharing": "gradient_disentangled",
            "gradient_accumulation_steps": 2,
            "mixed_precision": "bf16",
        },
    ],
    ids=[
        "electra",
        "electric_in_micro_batches_of_fp16",
        "all_tokens_mlm_by_lamb",
        "adversarial_disentangled",
    ],
)
def test_fit_makes_the_updates_of_the_loop(tiny_config, hparams):
    """Compare weights, slots and losses to the bit, with dropout and masks."""
    # For batches of unknown size, common in Keras, TensorFlow uses different
    # kernels.
    sized = "optimizer" not in hparams
    config = tiny_config(model_hparam_overrides=ONE_BLOCK, **hparams)
    scaling = LossScale.of(config.mixed_precision)
    loop_arguments = (
        config,
        STEPS,
        iter(dataset()),
        tf.distribute.get_strategy(),
    )
    loops, optimizer, loop = make_loop(*loop_arguments, loss_scale=scaling)
    loop.train(STEPS)
    logged = loop.take_chunk()
    rows = dict(zip(logged.names, logged.values.T, strict=True))
    model = PretrainingModel(config)
    names = [v.name for v in model.variables]
    model.compile()
    history = model.fit(
        dataset(sized), epochs=2, steps_per_epoch=STEPS // 2, verbose=0
    ).history
    assert [v.name for v in model.variables] == names
    assert model.global_step == STEPS
    bound = 0 if sized else 1e-5
    weights, loop_weights = (
        {variable.name: variable.numpy() for variable in trained.variables}
        for trained in (model, loops)
    )
    assert differences(weights, loop_weights, atol=bound) == []
    assert differences(model.optimizer.m, optimizer.m, atol=bound) == []

    def means(name):
        return pytest.approx(rows[name].reshape(2, -1).mean(1), rel=1e-6)

    names = ("cloze_loss", "policy_loss", "mlm_loss")
    generator = next(name for name in names if name in rows)
    assert history["loss"] == means("total_loss")
    assert history["gen_loss"] == means(generator)
    losses = history.keys() & {"disc_loss", "token_loss"}
    assert [name for name in losses if history[name] != means(name)] == []
    assert history["learning_rate"][-1] == rows["learning_rate"][-1]
    share = rows["replaced_tokens"][2:].sum() / rows["tokens"][2:].sum()
    assert history["replaced_share"][-1] == pytest.approx(share, rel=1e-6)


def test_evaluation_draws_the_same_each_time(tiny_config):
    model = PretrainingModel(tiny_config())
    model.compile()
    settings = {"return_dict": True, "verbose": 0}
    first, again = (model.evaluate(dataset(), **settings) for _ in "12")
    assert first == again
    assert set(first) == {"loss", "gen_loss", "disc_loss", "replaced_share"}
    weighted = first["gen_loss"] + 50 * first["disc_loss"]
    assert first["loss"] == pytest.approx(weighted, rel=1e-6)
    assert model.global_step == 0


def test_weights_are_saved_and_loaded(tiny_config, tmp_path):
    model, other = (PretrainingModel(tiny_config(seed=s)) for s in (1, 2))
    for name in ("weights", "all.weights.h5"):
        model.save_weights(tmp_path / name)
        for variable in other.variables:
            variable.assign(tf.zeros_like(variable))
        other.load_weights(tmp_path / name)
        for saved, loaded in zip(model.variables, other.variables, strict=True):
            np.testing.assert_array_equal(saved, loaded)
        other.compile()  # Keras's means are not saved.


def test_features_are_cast_and_other_inputs_are_refused(tiny_config):
    model = PretrainingModel(tiny_config())
    model.compile()
    (batch,) = dataset().take(1)
    wide = {n: tf.cast(v, tf.int64) for n, v in batch.items()}
    first, again = (model.evaluate(b, verbose=0) for b in (batch, wide))
    assert first == again
    weights = np.ones(len(batch["input_ids"]))
    with pytest.raises(Exception, match="labels or sample_weight"):
        model.fit(batch, weights)
    del wide["segment_ids"]
    with pytest.raises(Exception, match="features lack segment_ids"):
        model.evaluate(wide)


def test_another_optimizer_loss_or_schedule_is_refused(tiny_config):
    model = PretrainingModel(tiny_config())
    for setting in ({"optimizer": "adam"}, {"loss": "mse"}):
        refused(next(iter(setting)), model.compile, **setting)


@pytest.fixture
def compiled(tiny_config):
    model = PretrainingModel(tiny_config())
    model.compile()
    return model


@pytest.mark.parametrize(
    "callback",
    [
        tf_keras.callbacks.LearningRateScheduler(lambda epoch: 0.1),
        tf_keras.callbacks.ReduceLROnPlateau("loss", patience=1),
    ],
    ids=lambda callback: type(callback).__name__,
)
@pytest.mark.parametrize("pack", [list, lambda callbacks: callbacks[0]])
def test_callbacks_that_set_a_rate_are_refused_by_name(
    compiled, callback, pack
):
    name = type(callback).__name__
    callbacks = pack([callback])
    with pytest.raises(UserError, match=f'{name} sets the "lr"'):
        compiled.fit(dataset(), callbacks=callbacks, verbose=0)
    assert compiled.global_step == 0


@pytest.mark.parametrize("name", ["learning_rate", "lr"])
def test_rates_of_the_optimizer_cannot_be_set(compiled, name):
    assert not hasattr(compiled.optimizer, name)
    refused(
        "the schedule determines the rate",
        setattr,
        compiled.optimizer,
        name,
        0.1,
    )


IDS = np.array([[101, 110, 120, 102]] * 4)
WHOLE = {name: IDS for name in ("input_ids", "input_mask", "segment_ids")}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            IDS,
            r"are a ndarray \(4, 4\); expected a dict with the keys",
        ),
        (tf.constant(IDS), " .4, 4.; expected a dict"),
        (IDS.tolist(), "are a list; expected a dict"),
        ([IDS, IDS, IDS], "are a list; expected a dict"),
        (tf.data.Dataset.from_tensors(IDS), " .4, 4.; expected a dict"),
        (tf.data.Dataset.from_tensors((IDS, IDS)), " .4, 4.; expected"),
        (
            {"input_ids": IDS},
            "lack input_mask, segment_ids; expected a dict",
        ),
        (WHOLE | {"input_ids": IDS / 2}, "input_ids is float64; expected"),
        (
            tf.data.Dataset.from_tensor_slices(WHOLE),
            r"shape \(4,\); .*Batch the data",
        ),
        (None, "are a NoneType; expected a dict"),
    ],
)
def test_features_of_a_different_form_are_refused_before_a_step(
    compiled, data, message
):
    for call in (compiled.fit, compiled.evaluate, compiled.predict):
        with pytest.raises(UserError, match=message):
            call(data, verbose=0)


def test_features_of_a_generator_are_refused_at_its_first_batch(compiled):
    generator = (IDS for _ in range(2))
    with pytest.raises(Exception, match="expected a dict with the keys"):
        compiled.fit(generator, verbose=0)


def test_a_folder_is_saved_that_every_reader_takes(tiny_config, tmp_path):
    config = tiny_config(do_lower_case=False, strip_accents=False)
    model = PretrainingModel(config)
    refused(r"save_pretrained.*save_weights", model.save, "model.keras")
    folder = str(tmp_path / "saved")
    for _ in range(2):  # The second call replaces the files.
        model.save_pretrained(folder)
    loaded = load_pretrained(folder)
    assert loaded.global_step == 0
    tokenizer = Tokenizer.from_pretrained(folder).get_config()
    assert not (tokenizer["do_lower_case"] or tokenizer["strip_accents"])
    assert loaded.config.vocab_file == f"{folder}/vocab.txt"
    for variable, other in zip(
        model.variables, loaded.model.variables, strict=True
    ):
        np.testing.assert_array_equal(variable, other)
    ids = tf.constant([[101, 110, 120, 102]])
    masks = tf.ones_like(ids), tf.zeros_like(ids)
    np.testing.assert_array_equal(
        Encoder.from_pretrained(folder)(ids)["sequence_output"],
        model.discriminator(ids, *masks, None).sequence_output,
    )


@pytest.mark.slow
@pytest.mark.multi_device
def test_fit_on_two_devices_equals_the_loop_on_two(on_two_devices):
    results = on_two_devices["pretraining"]
    assert results["largest_difference"] == 0.0
    assert results["loss"] == pytest.approx(results["loop_loss"], rel=1e-6)


EXAMPLES = ROOT / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classification", "tagging"])
def test_a_program_runs(pretrained_folder, long_sizes, tmp_path, capsys, name):
    program = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    sizes = long_sizes | {"num_hidden_layers": 1}
    folder = pretrained_folder(model_hparam_overrides=sizes)
    flags = ["--model", folder, "--epochs=1", "--sentences=30"]
    if name == "classification":
        flags.append(f"--output={tmp_path / 'model.keras'}")
    assert 0 <= program["main"](flags) <= 1
    output = capsys.readouterr().out
    assert "6 unseen sentences" in output or "unseen words" in output
    assert "->" in output


def test_tags_follow_capitals():
    tag = runpy.run_path(str(EXAMPLES / "tagging.py"))["tag"]
    tags = [tag(word) for word in ("a", "I", "It", "IO", "iO")]
    assert tags == [0, 1, 1, 2, 1]

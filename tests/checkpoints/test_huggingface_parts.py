# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Networks that do not fit together are refused, read or written."""

import pathlib
import shutil

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.checkpoints.huggingface_names import Network
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import MemoryWeights

# --- generator and discriminator ---------------------------------------------


def test_a_part_in_the_others_folder(both):
    shutil.rmtree(both / "discriminator")
    shutil.copytree(both / "generator", both / "discriminator")
    message = both.refused()
    assert "discriminator holds ElectraForMaskedLM; expected the d" in message


def test_a_generator_that_claims_to_be_a_discriminator(both):
    (both / "generator").set_config(architectures=["ElectraForPreTraining"])
    message = (both / "generator").refused()
    assert "lacks tensors that ElectraForPreTraining" in message


def test_parts_of_different_models(both, tmp_path, hf_folder, whole):
    other = {name: value + 1 for name, value in whole.items()}
    hf_folder(tmp_path / "other").write(other)
    shutil.rmtree(both / "generator")
    shutil.copytree(tmp_path / "other" / "generator", both / "generator")
    message = both.refused()
    assert "are not of one model; read one part alone" in message
    assert "word_embeddings" in message


def test_parts_of_different_vocabularies(both):
    values = (both / "generator").tensors()
    for name in ("electra.embeddings.word_embeddings.weight",):
        values[name] = values[name][:-10]
    values["generator_lm_head.bias"] = values["generator_lm_head.bias"][:-10]
    (both / "generator").store(values)
    (both / "generator").set_config(vocab_size=200)
    assert "are not of one model" in both.refused()


def test_a_generator_as_wide_as_its_own_tables_may_have_them(
    tmp_path, hf_folder, arrays, assert_values, discriminator
):
    part = Network("ElectraForMaskedLM", "generator", "generator")
    narrow = arrays(part, seed=1, hidden_size=4, intermediate_size=20)
    values = {**narrow, **discriminator}
    folder = hf_folder(tmp_path)
    folder.write(values)
    # As transformers would have saved it, without our mark.
    (folder / "generator").set_config(electra_tf=None)
    read = folder.weights()
    assert_values(read, values)
    assert read.hparams["untied_generator_embeddings"] is True


def test_settings_of_the_generator_alone_are_said(both):
    (both / "generator").set_config(hidden_dropout_prob=0.3)
    dropped = both.weights().dropped
    (key,) = dropped
    assert key == "generator's config.json: hidden_dropout_prob"
    assert dropped[key].startswith("0.3 there")


# --- writing -----------------------------------------------------------------


@pytest.fixture
def out(tmp_path, hf_folder):
    return hf_folder(tmp_path / "out")


def test_a_part_that_is_not_there(out, arrays, discriminator, whole):
    message = out.write_refused(discriminator, part="generator")
    assert "holds a discriminator (no generator); there is no gen" in message
    masked_lm = arrays(Network("ElectraForMaskedLM"))
    message = out.write_refused(masked_lm, part="discriminator")
    assert "a masked LM (no discriminator); there is no discrim" in message
    assert "part is 'encoder'" in out.write_refused(whole, part="encoder")
    assert "no ELECTRA" in out.write_refused({"a": np.zeros(2)})


def test_a_variable_that_is_missing_or_of_another_shape(out, whole):
    values = dict(whole)
    del values["generator/encoder/layer_1/output/dense/bias"]
    name = "electra/encoder/layer_0/output/dense/bias"
    values[name] = np.zeros(7, np.float32)
    message = out.write_refused(values)
    assert f"{name}: float32 [7], expected float32 [6]" in message
    values[name] = whole[name]
    message = out.write_refused(values)
    assert "layer_1/output/dense/bias: missing" in message
    values = {**whole, name: whole[name].astype(np.float64)}
    assert "float64 [6]" in out.write_refused(values)


def test_hparams_of_another_model(out, whole):
    message = out.write_refused(whole, hparams={"vocab_size": 99})
    assert "vocab_size is 210 by the weights' shapes but 99" in message
    overrides = {"model_hparam_overrides": {"num_attention_heads": 5}}
    assert "not a multiple" in out.write_refused(whole, hparams=overrides)


def test_an_activation_the_generators_head_cannot_have(out, whole):
    hparams = {"model_hparam_overrides": {"hidden_act": "relu"}}
    message = out.write_refused(whole, hparams=hparams)
    assert "hidden_act relu of generator_predictions" in message
    out.write(whole, part="discriminator", hparams=hparams)


def test_a_vocabulary_of_another_model(out, whole, tmp_path, tiny_vocab):
    long = tmp_path / "long.txt"
    lines = pathlib.Path(tiny_vocab).read_text().splitlines()
    long.write_text("\n".join(lines + [f"w{i}" for i in range(11)]) + "\n")
    message = out.write_refused(whole, vocab_file=str(long))
    assert "211 lines but the model's token table 210 rows" in message
    long.write_text("\n".join(lines[:50]))
    assert "lacks" in out.write_refused(whole, vocab_file=str(long))


def test_a_remote_folder(discriminator):
    with pytest.raises(UserError, match="local disk only"):
        write_huggingface(MemoryWeights(discriminator), "gs://bucket/model")

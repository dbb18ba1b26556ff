# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Formats are inferred from content, hparams from shapes."""

import json
import os
import pathlib
import shutil

import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1, tf2
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.formats import (
    ELECTRA_CONFIG,
    complete_folder,
    format_config,
    open_weights,
    read_electra_config,
)
from electra_tf.checkpoints.sizes import (
    list_unseen_differences,
    merge_hparams,
    resolve_sizes,
)
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.pretraining.model import PretrainingModel
from tests.checkpoints.conftest import RandomWeights, same_tensors
from tests.conftest import TINY, refused

OVERRIDES = "model_hparam_overrides"
SHAPES = {"electra/a": [3, 2], "electra/b": [4]}


@pytest.fixture
def written(tmp_path):
    prefix = str(tmp_path / "model.ckpt-1234")
    tf1.write_tf1(RandomWeights(SHAPES), prefix)
    return prefix


WRITERS = {"tf1": tf1.write_tf1, "native": tf2.write_native}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("path", ["m", "", "m.index", "m.data-00000-of-00001"])
def test_a_format_is_recognized_by_prefix_folder_and_file(kind, path, tmp_path):
    WRITERS[kind](RandomWeights(SHAPES), str(tmp_path / "m"))
    weights = open_weights(str(tmp_path / path))
    assert weights.kind == kind
    same_tensors(weights, RandomWeights(SHAPES))


@pytest.mark.parametrize(
    ("name", "nearest"), [("model.ckpt-9001", "9000"), ("electra_small", "")]
)
def test_a_wrong_prefix_lists_the_five_nearest_prefixes(
    name, nearest, tmp_path
):
    for step in range(1000, 13000, 1000):
        (tmp_path / f"model.ckpt-{step}.index").write_bytes(b"")
    message = rf"nearest names in {tmp_path} \(of 12\): model.ckpt-{nearest}"
    with pytest.raises(UserError, match=message) as caught:
        open_weights(str(tmp_path / name))
    assert len(str(caught.value).split("): ")[1].split(", ")) == 5


def test_a_missing_data_file_is_named(tmp_path):
    prefix = str(tmp_path / "m")
    tf1.write_tf1(RandomWeights(SHAPES), prefix, bytes_per_file=16)
    file = sorted(tmp_path.glob("m.data-*"))[2]
    file.unlink()
    refused(f"{file.name} is missing", open_weights, prefix)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("empty", "no checkpoint in this directory"),
        ("empty/nothing", "empty/nothing"),
        ("absent/m", "The directory .*absent does not"),
    ],
)
def test_a_path_without_a_checkpoint_is_refused(path, message, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(message, open_weights, str(tmp_path / path))


@pytest.mark.parametrize("path", ["", "model.ckpt-1234"])
def test_a_missing_index_is_named(path, tmp_path, written):
    os.remove(written + ".index")
    message = r"only partly\. Copy .*1234\.index"
    refused(message, open_weights, str(tmp_path / path))


def test_a_checkpoint_keyed_by_objects_is_refused(tmp_path):
    path = tf.train.Checkpoint(x=tf.Variable(1.0)).write(f"{tmp_path}/x")
    refused("of a different project, keyed by its", open_weights, path)


@pytest.mark.parametrize("content", [b"", None, b"not a table" * 50])
def test_a_damaged_index_is_unreadable(written, content):
    index = pathlib.Path(written + ".index")
    index.write_bytes(index.read_bytes()[:40] if content is None else content)
    refused("unreadable .* Copy the file again", open_weights, written)


def test_a_folder_with_two_formats_is_refused(written, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    refused("Pass the path of the checkpoint", open_weights, str(tmp_path))
    assert open_weights(written).kind == "tf1"


@pytest.fixture
def several(written, tmp_path):
    """Return a folder of two checkpoints, without the file `checkpoint`."""
    shutil.copy(f"{written}.index", tmp_path / "n.index")
    (tmp_path / "checkpoint").unlink()
    return tmp_path


STATE = 'model_checkpoint_path: "{}"\n'


def test_a_recorded_checkpoint_is_found_in_a_moved_folder(several, written):
    state = STATE.format("/absent/model.ckpt-1234")
    (several / "checkpoint").write_text(state)
    assert open_weights(str(several)).path == written


def test_an_older_checkpoint_does_not_replace_a_missing_latest(several):
    state = STATE.format("model.ckpt-1235")
    state += 'all_model_checkpoint_paths: "model.ckpt-1234"\n'
    (several / "checkpoint").write_text(state)
    message = "names model.ckpt-1235, .*older checkpoint: model.ckpt-1234"
    refused(message, open_weights, str(several))


def test_several_checkpoints_without_a_record_are_refused(several):
    message = r"several checkpoints \(model.ckpt-1234, n\)"
    refused(message, open_weights, str(several))


def test_the_only_checkpoint_needs_no_record(written, tmp_path):
    (tmp_path / "checkpoint").unlink()
    assert open_weights(str(tmp_path)).path == written


def test_berts_values_slots_and_sizes_are_read(tmp_path, of_config):
    names = {
        "electra/": "bert/",
        "generator_predictions/output_bias": "cls/predictions/output_bias",
        "generator_predictions/": "cls/predictions/transform/",
    }
    masked_lm = of_config("pretrain/small_mlm_electra_objective_False", 8)
    shapes = {
        "bert/pooler/dense/kernel": [32, 32],
        "bert/pooler/dense/bias": [32],
        "cls/seq_relationship/output_weights": [2, 32],
        "cls/seq_relationship/output_bias": [2],
    }
    for name, shape in masked_lm.shapes.items():
        prefix = next(p for p in names if name.startswith(p))
        shapes[name.replace(prefix, names[prefix])] = shape
    source = RandomWeights({**shapes, "loss_scale": []})
    tf1.write_tf1(source, str(tmp_path / "bert_model.ckpt"))
    sizes = {"hidden_size": 64, "num_attention_heads": 8, "vocab_size": 200}
    (tmp_path / "bert_config.json").write_text(json.dumps(sizes))
    weights = open_weights(str(tmp_path / "bert_model.ckpt"))
    query = "encoder/layer_1/attention/self/query/kernel"
    head, bert_head = "generator_predictions", "cls/predictions"
    slot, norm = "dense/kernel/adam_m", "LayerNorm/gamma"
    bert_names = {
        f"electra/{query}": f"bert/{query}",
        f"{head}/{slot}": f"{bert_head}/transform/{slot}",
        f"{head}/{norm}": f"{bert_head}/transform/{norm}",
        f"{head}/output_bias": f"{bert_head}/output_bias",
        "loss_scale": "loss_scale",
    }
    read = {new: weights.read(new) for new in bert_names}
    expected = {new: source.read(old) for new, old in bert_names.items()}
    same_tensors(MemoryWeights(read), expected)
    assert weights.global_step == 1234
    assert len(weights.slots) == 2 * len(weights.shapes)
    assert len(weights.shapes) == len(shapes) + 1 - 4
    assert len(weights.dropped) == 3 * 4
    assert "pooler" in weights.dropped["bert/pooler/dense/kernel"]
    assert "next-sent" in weights.dropped["cls/seq_relationship/output_bias"]
    assert weights.hparams["embedding_size"] == 64
    assert weights.hparams[OVERRIDES]["num_attention_heads"] == 8


def test_the_config_has_keys_of_other_programs_and_no_path(tmp_path):
    hparams = {"model_size": "large", "do_lower_case": False}
    config = PretrainingConfig.create("m", "secret_folder", **hparams)
    complete_folder(str(tmp_path), config.as_dict(), None)
    text = (tmp_path / ELECTRA_CONFIG).read_text()
    assert "secret_folder" not in text and "learning_rate" not in text
    expected = {"format_version": 1, "hidden_size": 1024, "vocab_size": 30522}
    expected |= {"num_attention_heads": 16, "do_lower_case": False}
    assert expected.items() <= json.loads(text).items()
    hparams["embedding_size"] = 1024
    assert hparams.items() <= read_electra_config(str(tmp_path)).items()


@pytest.mark.parametrize(
    "name", ["bert_config.json", "config.json", ELECTRA_CONFIG]
)
def test_keys_of_other_programs_are_read(name, tmp_path):
    keys = {"vocab_size": 35000, "embedding_size": 128, "hidden_size": 256}
    keys |= {"num_attention_heads": 4, "architectures": ["ElectraForMaskedLM"]}
    (tmp_path / name).write_text(json.dumps(keys))
    sizes = resolve_sizes(read_electra_config(str(tmp_path)))
    assert (sizes.vocab_size, sizes.embedding_size) == (35000, 128)
    assert sizes.encoder.hidden_size == 256


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "not valid JSON"),
        ({"format_version": 2}, "format_version is 2"),
        ({"assumed": 3}, "assumed is 3; expected a list"),
        ({"hidden_size": 512}, "hidden_size is 512, but `hparams` imply 256"),
        ({"hparams": []}, "expected a JSON object"),
        ({"hparams": {"modl_size": "base"}}, "model_size"),
    ],
)
def test_an_invalid_config_is_refused_by_name(change, message, tmp_path):
    text = json.dumps({**json.loads(format_config({})), **change})
    (tmp_path / ELECTRA_CONFIG).write_text(text if change else text[:40])
    with pytest.raises(UserError, match=f"(?s){ELECTRA_CONFIG}.*{message}"):
        read_electra_config(str(tmp_path))


def test_assumed_hparams_are_written_but_not_read(tmp_path):
    hparams = {OVERRIDES: {"num_attention_heads": 1, "hidden_size": 64}}
    hparams["do_lower_case"] = True
    assumed = ["num_attention_heads", "do_lower_case"]
    complete_folder(str(tmp_path), hparams, None, assumed)
    contents = json.loads((tmp_path / ELECTRA_CONFIG).read_text())
    assert contents["num_attention_heads"] == 1
    assert contents["assumed"] == sorted(assumed)
    read = read_electra_config(str(tmp_path))
    assert read[OVERRIDES] == {"hidden_size": 64}
    assert "do_lower_case" not in read and read["strip_accents"] is True


def model_shapes(tiny_vocab, **hparams):
    hparams |= {"vocab_file": tiny_vocab, "max_seq_length": 16}
    config = PretrainingConfig.create("m", "d", **hparams)
    variables = PretrainingModel(config).variables
    return {v.name[:-2]: list(v.shape) for v in variables}


def test_sizes_and_hparams_convert_in_both_directions(
    config_name, all_configs, tmp_path
):
    config = all_configs[config_name]
    contents = Contents(config["shapes"])
    hparams = contents.hparams()
    inferred = resolve_sizes(hparams)
    assert inferred.encoder == contents.sizes.encoder
    assert inferred.embedding_size == contents.sizes.embedding_size
    contents.check_hparams(hparams)
    contents.check_hparams({"learning_rate": 1e-4})
    complete_folder(str(tmp_path / "new"), hparams, None)
    read = read_electra_config(str(tmp_path / "new"))
    assert {name: read[name] for name in hparams} == hparams
    assert resolve_sizes(read) == inferred
    if config_name.startswith("pretrain/"):
        recorded = dict(config["hparams"])
        # The variables do not show whether two towers belong to Electric.
        assert inferred == contents.sizes == resolve_sizes(recorded)
        contents.check_hparams(recorded, "test")


def test_inferred_hparams_build_the_same_variables(
    built_name, all_configs, tiny_vocab
):
    shapes = all_configs[built_name]["shapes"]
    assert model_shapes(tiny_vocab, **Contents(shapes).hparams()) == shapes


@pytest.mark.parametrize("hidden, heads", [(64, 1), (200, 2), (130, 2)])
def test_any_hidden_size_makes_a_model(hidden, heads, tiny_vocab):
    sizes = {"hidden_size": hidden, "num_attention_heads": heads}
    sizes |= {"num_hidden_layers": 1, "type_vocab_size": 3}
    overrides = {OVERRIDES: TINY[OVERRIDES] | sizes, "uniform_generator": True}
    shapes = model_shapes(tiny_vocab, **TINY | overrides)
    contents = Contents(shapes)
    assert model_shapes(tiny_vocab, **contents.hparams()) == shapes
    notes = "\n".join(contents.assumptions())
    assert f": {heads} assumed" in notes and "hidden_act" in notes


@pytest.mark.parametrize(
    ("objective", "hparams"),
    [
        ("replace_mlm", {}),
        ("replace_mlm", {"untied_generator": False}),
        ("all_tokens_mlm", {"uniform_generator": True}),
    ],
)
def test_a_discriminators_masked_lm_implies_its_objective(
    tiny_vocab, objective, hparams
):
    hparams = TINY | hparams | {"objective": objective}
    shapes = model_shapes(tiny_vocab, **hparams)
    contents = Contents(shapes)
    inferred = contents.hparams()
    assert inferred["objective"] == objective
    assert model_shapes(tiny_vocab, **inferred) == shapes
    assert contents.unknown == []
    assert "a masked LM that restores replaced tokens" in contents.description
    contents.check_hparams(hparams)
    other = {"objective": "electra", "electra_objective": True}
    message = "masked LM: checkpoint True, .*objective"
    refused(message, contents.check_hparams, other)
    prefixes = contents.prefixes("discriminator", "PATH")
    part = {n: s for n, s in shapes.items() if n.startswith(prefixes)}
    part = Contents(part)
    assert part.has("token_predictions/") and part.holds("discriminator")
    assert not part.generates
    part.check_hparams(hparams)


def test_a_generator_without_discriminator_has_its_own_sizes(
    all_configs, tiny_vocab
):
    shapes = all_configs["pretrain/small"]["shapes"]
    prefixes = ("generator", "electra/embeddings/")
    part = {n: s for n, s in shapes.items() if n.startswith(prefixes)}
    contents = Contents(part)
    hparams = contents.hparams()
    assert hparams[OVERRIDES]["hidden_size"] == 64
    assert hparams["generator_hidden_size"] == 1.0
    built = model_shapes(tiny_vocab, **hparams)
    assert {n: built[n] for n in part} == part
    assert "unknown without" in "\n".join(contents.assumptions())


@pytest.mark.parametrize(
    ("hparam", "value", "sizes"),
    [
        ("model_size", "base", "256, hparams 768"),
        ("embedding_size", 64, "128, hparams 64"),
        ("generator_layers", 0.5, "12, hparams 6"),
        ("embedding_sharing", "token", "embeddings, hparams token"),
        ("max_position_embeddings", 1024, "512, hparams 1024"),
        ("two_tower_generator", True, ""),
        ("untied_generator", False, ""),
        ("electra_objective", True, ""),
    ],
)
def test_a_mismatch_names_the_hparam(all_configs, hparam, value, sizes):
    name = "small"
    if hparam == "electra_objective":
        name = "small_mlm_electra_objective_False"
    hparams = {hparam: value}
    if hparam.startswith("max_"):
        hparams = {OVERRIDES: hparams}
    contents = Contents(all_configs[f"pretrain/{name}"]["shapes"])
    with pytest.raises(UserError, match=f"checkpoint.* {sizes}.*{hparam}"):
        contents.check_hparams(hparams)


def test_the_generator_size_of_the_released_small_model_is_named(all_configs):
    # Users often miss that its generator has the discriminator's hidden size,
    # while the default is a quarter.
    shapes = all_configs["pretrain/small"]["shapes"]
    released = shapes | {
        name.replace("electra/encoder/", "generator/encoder/"): shape
        for name, shape in shapes.items()
        if name.startswith("electra/encoder/")
    }
    check = Contents(released).check_hparams
    message = "change generator_hidden_size to 1.0"
    refused(message, check, {"generator_hidden_size": 0.25})


def test_the_generator_size_of_the_papers_base_model_is_named(all_configs):
    shapes = all_configs["pretrain/base_paper_settings"]["shapes"]
    check = Contents(shapes).check_hparams
    message = "change generator_hidden_size to 0.333"
    refused(message, check, {"generator_hidden_size": 0.25})


def test_overrides_are_joined_unless_the_size_is_stated():
    inferred, stated = {OVERRIDES: {"a": 1}}, {OVERRIDES: {"b": 2}}
    assert merge_hparams(inferred, stated) == {OVERRIDES: {"a": 1, "b": 2}}
    stated["model_size"] = "small"
    assert merge_hparams(inferred, stated)[OVERRIDES] == {"b": 2}


def test_an_incomplete_encoder_is_refused(all_configs):
    shapes = all_configs["pretrain/small"]["shapes"]
    shapes = {n: s for n, s in shapes.items() if "/encoder/layer_4/" not in n}
    refused("lacks layer 4", Contents(shapes).hparams)


def test_variables_of_other_networks_are_refused():
    contents = Contents({"conv/w": [3, 3]})
    refused("no encoder: its variables start with conv/w", contents.hparams)


def test_hparams_that_shapes_do_not_show_are_compared():
    stored = {OVERRIDES: {"num_attention_heads": 4}, "do_lower_case": True}
    stated = {OVERRIDES: {"hidden_act": "relu"}, "do_lower_case": False}
    stored[OVERRIDES]["hidden_size"] = stated[OVERRIDES]["hidden_size"] = 64
    assert list_unseen_differences(stored, stored) == []
    assert list_unseen_differences({}, stated) == []
    assert list_unseen_differences(stored, stated) == [
        "num_attention_heads: 4 next to the checkpoint, 1 in this run",
        "hidden_act: gelu next to the checkpoint, relu in this run",
        "do_lower_case: True next to the checkpoint, False in this run",
    ]

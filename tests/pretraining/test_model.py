# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables, draws, shared tables, and models loaded from folders."""

import os
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf import keras
from electra_tf.checkpoints import tf2
from electra_tf.checkpoints.assignment import assign
from electra_tf.checkpoints.contents import DELTA_TABLE, SHARED_TABLE, TABLE
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.weights import (
    MemoryWeights,
    select_part,
    variables_by_name,
)
from electra_tf.commands import convert_checkpoint
from electra_tf.finetuning import build as finetuning_build
from electra_tf.finetuning.initial_checkpoint import open_initial_checkpoint
from electra_tf.finetuning.registry import get_tasks
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.pretraining.saving import export_parts
from tests.conftest import (
    FIXTURES,
    ROOT,
    differences,
    read_json,
    refused,
    save_run,
)
from tests.pretraining.conftest import batches, masked_at

CONFIGURATIONS = """
small small_electric small_untied_generator_False
small_mlm_electra_objective_False small_untied_generator_embeddings
small_uniform_generator small_two_tower_generator_electra
small_electric_untied_generator_embeddings debug_small debug_base
""".split()


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_variables_are_named_as_the_originals(name, golden_dir, tmp_path):
    path = golden_dir / "variables_all_configs.json"
    recorded = read_json(path)[f"pretrain/{name}"]
    hparams = recorded["hparams"] | {"vocab_file": f"{golden_dir}/vocab.txt"}
    config = PretrainingConfig.create("m", str(tmp_path), **hparams)
    variables = PretrainingModel(config).trainable_variables
    assert {v.name[:-2]: v.shape.as_list() for v in variables} == {
        v["name"]: v["shape"]
        for v in recorded["creation_order_model_variables"]
        if v["trainable"]
    }
    count = sum(int(tf.size(v)) for v in variables)
    assert count == recorded["n_params_trainable"]


def test_draws_depend_on_seed_and_step_only(tiny_config):
    model = PretrainingModel(tiny_config())
    (features,) = batches(1)

    def run(seed, step):
        seeds = tf.constant([seed, step])
        out = model.compute(features, training=True, seed=seeds)
        return out["masked_lm_positions"].numpy(), float(out["total_loss"])

    (positions, loss), (again, same_loss) = run(1, 5), run(1, 5)
    np.testing.assert_array_equal(positions, again)
    assert loss == same_loss
    others = {"step": run(1, 6), "seed": run(2, 5)}
    equal_positions = [
        name
        for name, (other_positions, _) in others.items()
        if np.array_equal(positions, other_positions)
    ]
    assert equal_positions == []
    assert loss not in [other_loss for _, other_loss in others.values()]


def test_a_runs_folder_gives_its_weights_settings_and_tokenizer(run_of):
    settings = {"mask_prob": 0.3, "temperature": 0.5, "do_lower_case": False}
    model, folder = run_of("embeddings", **settings)
    loaded = load_pretrained(folder)
    assert differences(named(loaded.model), named(model)) == []
    assert settings.items() <= loaded.config.as_dict().items()
    assert loaded.tokenizer.tokenize("A") != loaded.tokenizer.tokenize("a")
    assert loaded.max_length == 16 and loaded.global_step == 7
    assert loaded.assumptions == ()
    assert loaded.lacks_generator() is loaded.lacks_discriminator() is None


@pytest.mark.parametrize("is_originals", [False, True])
def test_the_python_of_the_pretraining_guide_runs_unchanged(
    run_of, tiny_vocab, tmp_path, monkeypatch, is_originals
):
    source = FIXTURES / "golden" / "ckpt_v200_electra"
    if not is_originals:
        _, source = run_of("embeddings")
    shutil.copytree(source, tmp_path / "data" / "models" / "electra_small")
    shutil.copy(tiny_vocab, tmp_path / "data" / "vocab.txt")
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs/pretraining.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    names = {}
    exec(code, names)
    assert names["outputs"]["disc_probs"].shape == [1, len(names["tokens"])]
    assert np.isfinite(names["outputs"]["total_loss"].numpy())


def test_assumptions_without_settings_are_listed(run_of, tiny_vocab):
    _, folder = run_of("embeddings")
    for name in ("config", "electra_config", "digests"):
        os.remove(os.path.join(folder, f"{name}.json"))
    os.remove(os.path.join(folder, "vocab.txt"))
    refused("--vocab_file", load_pretrained, folder)
    loaded = load_pretrained(folder, tiny_vocab)
    assert any("num_attention_heads" in text for text in loaded.assumptions)
    hparams = {"model_hparam_overrides": {"num_attention_heads": 2}}
    loaded = load_pretrained(folder, tiny_vocab, hparams)
    assert loaded.assumptions == ()
    assert loaded.model.encoder_config.num_attention_heads == 2


KINDS = {
    "sized": ["generator"],
    "two_tower": ["generator_ltr", "generator_rtl"],
}
OTHERS = ("token", "gradient_disentangled")
FEATURES = {
    "input_ids": np.random.default_rng(0).integers(104, 200, [4, 16]),
    "input_mask": np.ones([4, 16]),
    "segment_ids": np.repeat([[0] * 9 + [1] * 7], 4, 0),
}
FEATURES = {n: tf.constant(v, tf.int32) for n, v in FEATURES.items()}


@pytest.fixture
def make(tiny_config):
    def model(sharing, generator="sized", **hparams):
        hparams |= {"embedding_sharing": sharing, "generator_hidden_size": 0.5}
        return PretrainingModel(tiny_config(**hparams, generator=generator))

    return model


@pytest.fixture
def trained(make, roughen):
    """Return a model whose delta and tables have left their start."""

    def model(*arguments, **hparams):
        made = make(*arguments, **hparams)
        roughen(made.variables)
        return made

    return model


@pytest.fixture
def run_of(trained, tmp_path):
    """Return a function that saves an untrained run: model and folder."""

    def run(*arguments, **hparams):
        model = trained(*arguments, **hparams)
        folder = str(tmp_path / "-".join(arguments))
        return model, save_run(folder, model.config, model)

    return run


def named(model):
    return {n: v.numpy() for n, v in variables_by_name(model.variables).items()}


def word_tables(model):
    """Return the token tables of the discriminator and the generator."""
    values = named(model)
    shared = values.get(SHARED_TABLE, values.get(TABLE))
    return shared + values.get(DELTA_TABLE, 0), shared


@pytest.mark.parametrize("generator", KINDS)
def test_the_sharing_decides_which_tables_exist(make, generator):
    plain = {
        f"electra/embeddings/{name}"
        for name in (
            "word_embeddings",
            "token_type_embeddings",
            "position_embeddings",
            "LayerNorm/gamma",
            "LayerNorm/beta",
        )
    }
    generator_tables = {
        n.replace("electra", s, 1) for n in plain for s in KINDS[generator]
    }
    token_tables = {
        n for n in generator_tables if n.endswith("word_embeddings")
    }
    sharings = ("embeddings", "none", *OTHERS)
    models = {sharing: make(sharing, generator) for sharing in sharings}
    assert {
        sharing: {n for n in named(model) if "/embeddings/" in n}
        for sharing, model in models.items()
    } == {
        "embeddings": plain,
        "none": plain | generator_tables,
        "token": plain | (generator_tables - token_tables),
        "gradient_disentangled": plain - {TABLE} | {SHARED_TABLE, DELTA_TABLE},
    }
    # Position and type tables are as wide as the token table they are added to.
    widths = {
        named(models[sharing])[name].shape[-1]
        for sharing in ("token", "none")
        for name in generator_tables - token_tables
    }
    assert widths == {8} == {16 * 0.5}


def flatten(outputs):
    """Return arrays by name; those of a list, by name and index."""
    return {
        f"{name}[{index}]": array
        for name, value in outputs.items()
        for index, array in enumerate(tf.nest.flatten(value))
    }


@pytest.mark.parametrize("generator", KINDS)
def test_a_fresh_delta_changes_no_bit(make, generator):
    outputs = [
        make(sharing, generator).compute(FEATURES, training=True)
        for sharing in ("embeddings", "gradient_disentangled")
    ]
    shared, disentangled = map(flatten, outputs)
    assert len(outputs[0]) > 15
    assert differences(disentangled, shared) == []


def gradient(model, loss, table):
    """Return the gradient of a loss by a table, float32; None if absent."""
    ids = FEATURES["input_ids"]
    masked = masked_at(ids, [[1, 6, 11]] * 4)
    sampled = tf.reverse(ids[:, :3], [0])  # equal for both models
    variable = variables_by_name(model.variables)[table]
    with tf.GradientTape() as tape:
        value = model.compute(FEATURES, masked, sampled)[loss]
    result = tape.gradient(value, variable)
    return None if result is None else tf.convert_to_tensor(result).numpy()


@pytest.mark.parametrize(
    ("loss", "trained_table", "other_table", "tables_of_sum"),
    [
        ("mlm_loss", SHARED_TABLE, DELTA_TABLE, [SHARED_TABLE]),
        ("disc_loss", DELTA_TABLE, SHARED_TABLE, [SHARED_TABLE, DELTA_TABLE]),
    ],
    ids=["mlm_loss", "disc_loss"],
)
def test_each_loss_trains_one_table_like_a_shared_table(
    trained, loss, trained_table, other_table, tables_of_sum
):
    model, plain = trained("gradient_disentangled"), trained("embeddings")
    values = named(model)
    values[TABLE] = sum(values[name] for name in tables_of_sum)
    for name, variable in variables_by_name(plain.variables).items():
        variable.assign(values[name])
    assert gradient(model, loss, other_table) is None
    expected = gradient(plain, loss, TABLE)
    assert np.abs(expected).max() > 1e-4
    table_gradient = gradient(model, loss, trained_table)
    np.testing.assert_allclose(table_gradient, expected, rtol=1e-6, atol=1e-9)


def test_every_reader_of_a_run_gets_the_sum_of_table_and_delta(
    run_of, tmp_path, tiny_vocab
):
    model, folder = run_of("gradient_disentangled")
    table, shared = word_tables(model)
    assert not np.array_equal(table, shared)
    # The run's checkpoint contains the table and the delta.
    assert set(open_weights(folder).shapes) == set(named(model))
    config = FinetuningConfig.create(
        "m",
        "d",
        task_names=["sst"],
        vocab_file=tiny_vocab,
        init_checkpoint=folder,
        max_seq_length=16,
    )
    start = open_initial_checkpoint(config)
    tuned = finetuning_build.build_model(start.config, get_tasks(start.config))
    report = finetuning_build.load_weights(config, start.weights, tuned)
    assert "or a sum" in str(report) and report.missing
    assert np.array_equal(named(tuned)[TABLE], table)
    layer = keras.Encoder.from_pretrained(folder)
    assert np.array_equal(layer._variables[TABLE], table)
    encoded = layer(FEATURES)["sequence_output"]
    loaded = load_pretrained(folder)
    encoders = {"run": model, "loaded": loaded.model}
    sequences = {
        name: owner.discriminator(*FEATURES.values()).sequence_output
        for name, owner in encoders.items()
    }
    assert differences(sequences, dict.fromkeys(encoders, encoded)) == []
    names = [v.name for v in loaded.model.discriminator.variables]
    assert "delta" not in "".join(names)
    expected, _ = model.generator_logits(FEATURES)
    logits, _ = loaded.model.generator_logits(FEATURES)
    assert np.array_equal(logits, expected)


@pytest.fixture
def exported(run_of):
    """Return a function that exports and loads a network of a run."""

    def export(sharing, generator, network):
        model, folder = run_of(sharing, generator)
        prefixes = export_parts(model, 7, folder)
        (part,) = [
            os.path.dirname(prefix)
            for prefix in prefixes
            if os.path.dirname(prefix).endswith(network)
        ]
        return model, open_weights(part), load_pretrained(part)

    return export


@pytest.mark.parametrize("generator", KINDS)
@pytest.mark.parametrize("sharing", OTHERS)
def test_an_exported_discriminator_is_a_plain_model(
    exported, sharing, generator
):
    model, weights, loaded = exported(sharing, generator, "discriminator")
    table, _ = word_tables(model)
    assert not {DELTA_TABLE, SHARED_TABLE} & weights.specs.keys()
    assert np.array_equal(weights.read(TABLE), table)
    assert weights.contents.embedding_sharing is None
    networks = (each.discriminator for each in (model, loaded.model))
    encoded = [n(*FEATURES.values()).sequence_output for n in networks]
    assert np.array_equal(*encoded)
    loaded.require_discriminator("a test")


@pytest.mark.parametrize("generator", KINDS)
@pytest.mark.parametrize("sharing", OTHERS)
def test_an_exported_generator_is_a_plain_model(exported, sharing, generator):
    model, weights, loaded = exported(sharing, generator, "generator")
    _, shared = word_tables(model)
    assert not {DELTA_TABLE, SHARED_TABLE} & weights.specs.keys()
    assert np.array_equal(weights.read(TABLE), shared)
    scores, _ = model.generator_logits(FEATURES)
    part_logits, _ = loaded.model.generator_logits(FEATURES)
    assert np.array_equal(part_logits, scores)
    loaded.require_generator("a test")


def convert(source, target, *flags):
    argv = ["convert_checkpoint", source, str(target), *flags]
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    return str(target)


@pytest.mark.parametrize("sharing", OTHERS)
def test_the_original_s_format_and_back_restores_a_run(
    run_of, sharing, tmp_path
):
    model, folder = run_of(sharing)
    table, _ = word_tables(model)
    original = convert(folder, tmp_path / "tf1/model.ckpt-7")
    # The original's fine-tuning reads this table.
    reader = tf.train.load_checkpoint(original)
    assert np.array_equal(reader.get_tensor(TABLE), table)
    native = tmp_path / "native/model.ckpt-7"
    back = convert(original, native, "--output_format=native")
    restored = {n: v for n, v in tf2.open_native(back) if n != "global_step"}
    assert differences(restored, named(model)) == []


@pytest.mark.parametrize("network", ["discriminator", "generator"])
@pytest.mark.parametrize("sharing", OTHERS)
def test_a_network_is_converted_to_a_folder_of_transformers(
    run_of, sharing, network, tmp_path
):
    model, folder = run_of(sharing)
    flags = "--output_format=huggingface", f"--part={network}"
    remedy = "Write each network to a separate folder"
    refused(remedy, convert, folder, tmp_path / "hf", flags[0])
    converted = convert(folder, tmp_path / "hf", *flags)
    alone = select_part(open_weights(folder), network)
    weights = open_weights(converted)
    assert weights.shapes == alone.shapes
    expected = {name: alone.read(name) for name in alone.shapes}
    table, shared = word_tables(model)
    expected[TABLE] = table if network == "discriminator" else shared
    written = {name: weights.read(name) for name in weights.shapes}
    assert differences(written, expected) == []
    if network == "generator":
        loaded = load_pretrained(converted).model
        logits, _ = model.generator_logits(FEATURES)
        assert np.array_equal(loaded.generator_logits(FEATURES)[0], logits)


@pytest.mark.parametrize("generator", KINDS)
@pytest.mark.parametrize("sharing", OTHERS)
def test_a_plain_initial_checkpoint_gives_the_same_model(
    trained, make, sharing, generator
):
    plain = trained("embeddings", generator)
    started = make(sharing, generator)
    report = assign(MemoryWeights(named(plain)), started.variables)
    assert not (report.missing or report.unexpected)
    names = ("mlm_logits", "disc_logits", "total_loss")
    expected, outputs = plain.compute(FEATURES), started.compute(FEATURES)
    different = [
        name
        for name in names
        if not np.array_equal(outputs[name], expected[name])
    ]
    assert different == []


@pytest.mark.parametrize("generator", KINDS)
def test_a_plain_initial_checkpoint_lacks_unshared_tables(
    trained, make, generator
):
    plain = MemoryWeights(named(trained("embeddings", generator)))
    model = make("none", generator)
    start = named(model)
    message = f"lacks .*\n  {KINDS[generator][0]}/embeddings/word_embeddings"
    refused(message, assign, plain, model.variables)
    allowed = r"^generator\w*/embeddings"
    report = assign(plain, model.variables, allow_missing=allowed)
    tables = {name for name in start if re.match(allowed, name)}
    assert set(report.missing) == tables and not report.other_shape
    values = named(model)
    assert all(np.array_equal(values[n], start[n]) for n in tables)


@pytest.mark.parametrize("sharing", ["none", *OTHERS])
@pytest.mark.parametrize("hparams", ["embeddings", "none", *OTHERS])
def test_an_initial_checkpoint_with_different_sharing_is_refused(
    trained, make, sharing, hparams
):
    weights = MemoryWeights(named(trained(sharing)))
    if hparams == sharing:
        assign(weights, make(hparams).variables)
        return
    message = (
        f"embedding_sharing is {sharing} in the checkpoint, but {hparams} in"
        " the model.*Set"
    )
    refused(message, assign, weights, make(hparams).variables)
    # The discriminator alone may start a model with any sharing.
    alone, model = select_part(weights, "discriminator"), make(hparams)
    report = assign(alone, model.variables, allow_missing="^generator")
    assert not report.unexpected


def test_a_run_from_bert_starts_with_a_delta_of_zero(trained, make):
    held = named(trained("embeddings"))
    bert = {n: v for n, v in held.items() if n.startswith("electra/")}
    model = make("gradient_disentangled")
    heads = "^(generator|discriminator_predictions)"
    assign(MemoryWeights(bert), model.variables, allow_missing=heads)
    assert np.array_equal(named(model)[SHARED_TABLE], held[TABLE])
    assert not named(model)[DELTA_TABLE].any()


@pytest.mark.parametrize(
    ("network", "table"),
    [("discriminator", DELTA_TABLE), ("generator", SHARED_TABLE)],
    ids=["discriminator", "generator"],
)
def test_slots_are_assigned_with_their_tables(trained, network, table):
    values = named(trained("gradient_disentangled"))
    slots = {
        f"{name}/adam_{moment}": value + i
        for name, value in values.items()
        for i, moment in enumerate("mv", 1)
    }
    alone = select_part(MemoryWeights(values | slots), network)
    assert len(alone.slots) == 2 * len(alone.shapes)
    ends = ("/adam_m", "/adam_v")
    selected = {end: alone.read(TABLE + end) for end in ends}
    expected = {end: slots[table + end] for end in ends}
    assert differences(selected, expected) == []

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A fine-tuned model is evaluated alone, or is the start of another."""

import pytest

from configure.errors import UserError


def test_evaluation_alone_gives_the_same_scores(config_of, run, tmp_path):
    trained, _ = run(config_of())
    evaluated, text = run(config_of(do_train=False))
    assert evaluated["trials"][0]["results"] == trained["trials"][0]["results"]
    assert "Earlier results are kept as" in text
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    config = config_of(
        do_train=False,
        init_checkpoint=str(path),
        model_dir=str(tmp_path / "nothing"),
    )
    evaluated, _ = run(config)
    assert evaluated["trials"][0]["results"] == trained["trials"][0]["results"]


def test_evaluation_alone_needs_heads(
    config_of, run, finetuning_config, write_task, tmp_path
):
    run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    write_task("cola", "dev.tsv", "a\t1\tx\tthe of\n")
    config = finetuning_config(
        "cola",
        do_train=False,
        init_checkpoint=str(path),
        model_hparam_overrides=config_of().model_hparam_overrides,
    )
    with pytest.raises(UserError, match="task_specific/cola"):
        run(config)


def test_evaluation_alone_needs_a_model(config_of, run):
    with pytest.raises(UserError, match="no model in .*sst_model_1"):
        run(config_of(do_train=False))


def test_another_task_s_model_is_a_start_with_a_fresh_head(
    config_of, run, finetuning_config, cola, tmp_path
):
    run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    config = finetuning_config("cola", init_checkpoint=str(path))
    # The sizes come with the weights where they are not given.
    given = {
        name: value
        for name, value in config.as_dict().items()
        if config.origins[name] == "argument"
        and name not in ("model_hparam_overrides", "model_name", "data_dir")
    }
    config = type(config).create("tiny", str(tmp_path), **given)
    result, text = run(config)
    assert "missing, keeps its fresh value: task_specific/cola" in text
    assert result["trials"][0]["results"]["cola"].keys() == {"mcc", "loss"}


def test_a_size_that_is_not_the_checkpoint_s_is_refused(
    config_of, run, tmp_path
):
    run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    config = config_of(
        init_checkpoint=str(path),
        model_hparam_overrides={
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "max_position_embeddings": 64,
        },
    )
    with pytest.raises(UserError, match="hidden_size: checkpoint 16"):
        run(config)


def test_heads_of_attention_are_checked_though_no_shape_shows_them(
    config_of, run, tmp_path
):
    run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    overrides = dict(config_of().model_hparam_overrides, num_attention_heads=4)
    config = config_of(
        init_checkpoint=str(path), model_hparam_overrides=overrides
    )
    with pytest.raises(UserError, match="num_attention_heads 2"):
        run(config)


def test_a_model_folder_without_weights_is_named(config_of, run, tmp_path):
    (tmp_path / "models/tiny").mkdir(parents=True)
    config = config_of(init_checkpoint=str(tmp_path / "models/tiny"))
    with pytest.raises(UserError, match="init_checkpoint.*random weights"):
        run(config)

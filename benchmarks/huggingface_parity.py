# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Check that converted checkpoints have equal outputs in transformers.

Each model is written as a Hugging Face folder and run by transformers on a
padded batch. Outputs at real tokens are compared with this project's. Then
transformers saves the folder, which is read again, and the bits are compared.
Models are the recorded checkpoints of the original, and the paper's shapes with
random weights. The program fails if a difference exceeds the bound.

  python benchmarks/huggingface_parity.py --python=PEER/bin/python
"""

import json
import os
import sys
import tempfile

import harness
import numpy as np
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import MemoryWeights, with_description
from electra_tf.pretraining.model import PretrainingModel

PARTS = ("discriminator", "generator")
INPUTS = ("input_ids", "input_mask", "segment_ids")
RECORDED = "electra tied_generator untied_generator_embeddings mlm".split()
RECORDED += ["uniform_generator", "gen_layers_half_weights"]
# The sizes of the paper's models.
SMALL = {"model_size": "small"}
SHAPES = {
    "small": SMALL,
    "small, generator of its size": {**SMALL, "generator_hidden_size": 1.0},
    "base": {"model_size": "base", "generator_hidden_size": 1 / 3},
}
BOUND = 1e-5


def models(golden):
    """Return (hparams, checkpoint or None for random weights) by name."""
    by_name = {
        f"random, {name}": ({**hparams, "vocab_file": "vocab.txt"}, None)
        for name, hparams in SHAPES.items()
    }
    checkpoints = {f"v200_{n}": f"ckpt_v200_{n}/model.ckpt" for n in RECORDED}
    checkpoints["tiny_ckpt"] = "ckpt_pretrain_tiny/model.ckpt-50"
    for name, checkpoint in checkpoints.items():
        path = os.path.join(golden, f"forward_{name}.json")
        with open(path, encoding="utf-8") as file:
            hparams = {"vocab_file": "vocab.txt", **json.load(file)["hparams"]}
        by_name[name] = (hparams, os.path.join(golden, checkpoint))
    for hparams, _ in by_name.values():
        vocab = os.path.basename(hparams["vocab_file"])
        hparams["vocab_file"] = os.path.join(golden, vocab)
    return by_name


def values_of(prefix, model, random):
    """Return the weights by name, from a checkpoint or drawn at random."""
    shapes = {v.name.split(":")[0]: v.shape for v in model.variables}
    if prefix:
        reader = tf.train.load_checkpoint(prefix)
        return {name: reader.get_tensor(name) for name in shapes}
    values = {}
    for name, shape in shapes.items():
        noise = random.standard_normal(shape, np.float32)
        noise *= 0.1 if noise.ndim == 1 else 0.02
        values[name] = noise + np.float32(name.endswith("gamma"))
    return values


def make_batch(sizes, random):
    """Return rows of several lengths, with two segments except in the last."""
    length = min(48, sizes.max_position_embeddings)
    lengths = np.array([[length], [length // 2], [length - 3], [5]])
    mask = np.arange(length) < lengths
    second = mask & (np.arange(length) >= lengths // 2)
    second[-1] = False
    ids = mask * random.integers(0, sizes.vocab_size, mask.shape)
    arrays = (ids, mask, np.minimum(second, sizes.type_vocab_size - 1))
    arrays = [array.astype(np.int32) for array in arrays]
    return dict(zip(INPUTS, arrays, strict=True))


def forward(model, batch):
    features = {name: tf.constant(array) for name, array in batch.items()}
    outputs = {}
    if model.discriminator is not None:
        encoded = model.discriminator(*features.values()).sequence_output
        outputs["discriminator"] = model.discriminator_head(encoded).numpy()
    if model.masked_lm_head is not None:
        outputs["generator"] = model.generator_logits(features)[0].numpy()
    return outputs


def compare(arm, folder, seed, hparams, prefix):
    """Run a model here and in transformers; return the output differences."""
    random = np.random.default_rng(seed)
    config = PretrainingConfig.create("parity", "unused", **hparams)
    model = PretrainingModel(config)
    values = values_of(prefix, model, random)
    for variable in model.variables:
        variable.assign(values[variable.name.split(":")[0]])
    weights = with_description(
        MemoryWeights(values), config.as_dict(), hparams["vocab_file"]
    )
    write_huggingface(weights, folder)
    batch = make_batch(model.encoder_config, random)
    np.savez(os.path.join(folder, "batch.npz"), **batch)
    arm.ask("outputs", folder=folder)
    answers = np.load(os.path.join(folder, "theirs.npz"))
    real, row = batch["input_mask"].astype(bool), {}
    for part, outputs in forward(model, batch).items():
        difference = np.abs(outputs - answers[part].reshape(outputs.shape))[
            real
        ]
        row[part] = float(difference.max())
    read = open_weights(os.path.join(folder, "saved"))
    row["saved"] = set(read.shapes) == set(values) and all(
        read.read(name).tobytes() == value.tobytes()
        for name, value in values.items()
    )
    return row


def main():
    parser = harness.parser(__doc__, repeats=1)
    more = "number of models; default: all"
    parser.add_argument("--models", type=int, help=more)
    args = parser.parse_args()
    if not args.python:
        parser.error("Pass --python, an interpreter that has transformers")
    chosen, rows = list(models(harness.GOLDEN).items())[: args.models], {}
    planned = {"transformers": ("transformers", {"task": "Parity"})}
    with harness.Arms(args, planned) as arms:
        if arms.failed:
            sys.exit(f"error: {arms.failed}")
        for seed, (name, model) in enumerate(chosen):
            with tempfile.TemporaryDirectory() as work:
                folder = os.path.join(work, "model")
                rows[name] = compare(arms["transformers"], folder, seed, *model)
        about = arms.ask_all("describe")
    shown, good = [], True
    for name, row in rows.items():
        logits = {n: f"{row[n]:.1e}" if n in row else "" for n in PARTS}
        saved = {"saved and read": "equal" if row["saved"] else "DIFFERENT"}
        shown.append({"model": name, **logits, **saved})
        good &= row["saved"] and all(row.get(n, 0) <= BOUND for n in PARTS)
    result = {"models": rows, "about": about}
    harness.report(args, "Largest difference of logits", result, shown)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

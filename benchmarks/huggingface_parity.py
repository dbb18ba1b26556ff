# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Our checkpoints in transformers: same outputs there, same bits when back.

For every model: weights -> a Hugging Face folder -> transformers, run on a
padded batch and compared with our own outputs at the positions that are not
padding; then saved by transformers and read again, compared to the bit. Models
are the original's checkpoints in --golden, and the paper's shapes with random
weights. Fails beyond the bound. (prediction.py uses the folder's tokenizer.)

  python benchmarks/huggingface_parity.py --python=PEER/bin/python
"""

import json
import os
import sys
import tempfile

import arm_ours
import harness
import numpy as np

PARTS = ("discriminator", "generator")
RECORDED = (
    "electra",
    "tied_generator",
    "untied_generator_embeddings",
    "mlm",
    "uniform_generator",
    "gen_layers_half_weights",
)
# Shapes of the paper's models.
SMALL = {"model_size": "small"}
SHAPES = {
    "small": SMALL,
    "small, generator of its size": {**SMALL, "generator_hidden_size": 1.0},
    "base": {"model_size": "base", "generator_hidden_size": 1 / 3},
}
BOUND = 1e-5


def models(args):
    """(name, hparams, vocabulary, prefix or None for random weights)."""
    found = [
        (f"v200_{name}", f"ckpt_v200_{name}/model.ckpt") for name in RECORDED
    ]
    found.append(("tiny_ckpt", "ckpt_pretrain_tiny/model.ckpt-50"))
    for name, prefix in found:
        path = os.path.join(args.golden, f"forward_{name}.json")
        with open(path, encoding="utf-8") as file:
            hparams = json.load(file)["hparams"]
        vocab = os.path.basename(hparams.pop("vocab_file", "vocab.txt"))
        vocab = os.path.join(args.golden, vocab)
        yield name, hparams, vocab, os.path.join(args.golden, prefix)
    vocab = os.path.join(args.golden, "vocab.txt")
    for name, hparams in SHAPES.items():
        yield f"random, {name}", hparams, vocab, None


def values_of(prefix, model, seed):
    """Arrays by name: a checkpoint's, else random ones that are not trivial."""
    import tensorflow as tf

    names = [variable.name.split(":")[0] for variable in model.variables]
    if prefix:
        reader = tf.train.load_checkpoint(prefix)
        return {name: reader.get_tensor(name) for name in names}
    random, values = np.random.RandomState(seed), {}
    for name, variable in zip(names, model.variables, strict=True):
        noise = random.randn(*variable.shape)
        if name.endswith("gamma"):
            value = 1 + 0.1 * noise
        else:
            value = (0.1 if noise.ndim == 1 else 0.02) * noise
        values[name] = value.astype(np.float32)
    return values


def make_batch(sizes, seed):
    """Rows of several lengths, two segments in each but the last."""
    random = np.random.RandomState(seed)
    length = min(48, sizes.max_position_embeddings)
    lengths = np.array([length, length // 2, length - 3, 5])
    ids = random.randint(0, sizes.vocab_size, [len(lengths), length])
    mask = np.arange(length) < lengths[:, None]
    second = np.array([*(lengths[:3] // 2), length])[:, None]
    segments = np.minimum(
        (np.arange(length) >= second) & mask, sizes.type_vocab_size - 1
    )
    return {
        "input_ids": (ids * mask).astype(np.int32),
        "input_mask": mask.astype(np.int32),
        "segment_ids": segments.astype(np.int32),
    }


def forward(model, batch):
    """Logits of both networks, as far as there are."""
    inputs = [batch[n] for n in ("input_ids", "input_mask", "segment_ids")]
    outputs = {}
    if model.discriminator is not None:
        encoded = model.discriminator(*inputs)
        logits = model.discriminator_head(encoded.sequence_output)
        outputs["discriminator"] = logits.numpy()
    if model.masked_lm_head is not None:
        encoded = model.generator(*inputs)
        logits = model.masked_lm_head(
            encoded.sequence_output, model.generator.embeddings.word_embeddings
        )
        outputs["generator"] = logits.numpy()
    return outputs


def compare(arm, folder, seed, hparams, vocab, prefix):
    """Writes a model for transformers; what it makes of it beside ours."""
    product = arm_ours.product
    config = product("PretrainingConfig").create(
        "parity", "unused", **{**hparams, "vocab_file": vocab}
    )
    model = product("PretrainingModel")(config)
    values = values_of(prefix, model, seed)
    for variable in model.variables:
        variable.assign(values[variable.name.split(":")[0]])
    product("write_huggingface")(
        product("MemoryWeights")(values),
        folder,
        vocab_file=vocab,
        hparams=config.as_dict(),
    )
    batch = make_batch(model.encoder_config, seed)
    np.savez(os.path.join(folder, "batch.npz"), **batch)
    outputs = forward(model, batch)
    arm.ask("outputs", folder=folder)
    theirs = np.load(os.path.join(folder, "theirs.npz"))
    real, row = batch["input_mask"].astype(bool), {}
    for part, ours in outputs.items():
        difference = np.abs(ours - theirs[part].reshape(ours.shape))[real]
        row[part] = float(difference.max())
    read = product("open_weights")(os.path.join(folder, "saved"))
    row["saved"] = set(read.shapes) == set(values) and all(
        read.read(name).tobytes() == value.tobytes()
        for name, value in values.items()
    )
    return row


def main():
    """Compares and shows."""
    parser = harness.parser(__doc__, repeats=1)
    add = parser.add_argument
    add("--golden", default=harness.GOLDEN, help="the recordings")
    add("--models", type=int, default=0, help="0: all of them")
    args = parser.parse_args()
    if not args.python:
        parser.error("give --python, an interpreter that has transformers")
    arm_ours.product("PretrainingModel", harness.ROOT)
    chosen = list(models(args))
    chosen = chosen[-args.models :] if args.models else chosen
    planned = {"transformers": ("transformers", {"task": "Parity"})}
    with (
        tempfile.TemporaryDirectory() as work,
        harness.Arms(args, planned) as arms,
    ):
        if arms.failed:
            sys.exit(f"error: {arms.failed}")
        arm = arms["transformers"]
        rows = {
            name: compare(arm, os.path.join(work, str(seed)), seed, *model)
            for seed, (name, *model) in enumerate(chosen)
        }
        about = arms.ask_all("describe")
    shown = [
        {
            "model": name,
            **{n: f"{row[n]:.1e}" if n in row else "" for n in PARTS},
            "saved and read": "equal" if row["saved"] else "DIFFERENT",
        }
        for name, row in rows.items()
    ]
    result = {"models": rows, "about": about}
    harness.report(args, "Largest difference of logits", result, shown)
    good = all(
        row["saved"] and all(row.get(part, 0) <= BOUND for part in PARTS)
        for row in rows.values()
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

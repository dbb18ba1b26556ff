# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Our checkpoints in transformers: same outputs there, same bits when back.

For every model: weights -> a Hugging Face folder -> transformers, run on a
padded batch and compared with our own outputs at the positions that are not
padding; then saved by transformers and read again, compared to the bit. The
folder's tokenizer is compared on lines of text. transformers and PyTorch live
in environments of their own, one after the other:

  python -m venv /path/hf5
  /path/hf5/bin/pip install "torch==2.13.0+cpu" "transformers>=5,<6"
  python benchmarks/huggingface_parity.py --reference ../shared/golden \
      --python /path/hf4/bin/python --python /path/hf5/bin/python \
      --output results.json
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PARTS = ("discriminator", "generator")
ARCHITECTURES = {
    "discriminator": "ElectraForPreTraining",
    "generator": "ElectraForMaskedLM",
}
RECORDED = (
    "electra",
    "tied_generator",
    "untied_generator_embeddings",
    "mlm",
    "uniform_generator",
    "gen_layers_half_weights",
    "relu_head3",
)
# Shapes of the paper's models with random weights.
SHAPES = {
    "small": {"model_size": "small"},
    "small, generator of its size": {
        "model_size": "small",
        "generator_hidden_size": 1.0,
    },
    "base": {
        "model_size": "base",
        "embedding_size": 768,
        "generator_hidden_size": 1 / 3,
    },
}
BOUND = 1e-5


# --- our side ----------------------------------------------------------------


def make_model(hparams, vocab_file):
    from configure.pretraining import PretrainingConfig
    from electra_tf.pretraining.model import PretrainingModel

    settings = {**hparams, "vocab_file": vocab_file}
    config = PretrainingConfig.create("parity", "unused", **settings)
    return config, PretrainingModel(config)


def recorded_models(golden):
    """Checkpoints of the original with their recorded hparams."""
    runs = [
        (f"v200_{name}", f"ckpt_v200_{name}/model.ckpt") for name in RECORDED
    ]
    runs.append(("tiny_ckpt", "ckpt_pretrain_tiny/model.ckpt-50"))
    for name, prefix in runs:
        with open(os.path.join(golden, f"forward_{name}.json")) as file:
            hparams = json.load(file)["hparams"]
        vocab = os.path.basename(hparams.get("vocab_file", "vocab.txt"))
        hparams.pop("vocab_file", None)
        yield name, hparams, os.path.join(golden, vocab), prefix


def load(golden, prefix):
    import tensorflow as tf

    from electra_tf.checkpoints.weights import MemoryWeights, without_optimizer

    reader = tf.train.load_checkpoint(os.path.join(golden, prefix))
    names = reader.get_variable_to_shape_map()
    values = {name: reader.get_tensor(name) for name in names}
    return without_optimizer(MemoryWeights(values, prefix))


def random_weights(model, seed):
    """The usual spread, with biases and layer norms that are not trivial."""
    from electra_tf.checkpoints.weights import MemoryWeights

    random, values = np.random.RandomState(seed), {}
    for variable in model.variables:
        name = variable.name.split(":")[0]
        noise = random.randn(*variable.shape)
        if name.endswith("gamma"):
            value = 1 + 0.1 * noise
        else:
            value = (0.1 if noise.ndim == 1 else 0.02) * noise
        values[name] = value.astype(np.float32)
    return MemoryWeights(values)


def make_batch(vocab_size, types, length, seed):
    """Rows of several lengths, two segments in each but the last."""
    random = np.random.RandomState(seed)
    lengths = np.array([length, length // 2, length - 3, 5])
    ids = random.randint(0, vocab_size, [len(lengths), length])
    mask = np.arange(length) < lengths[:, None]
    segments = (
        np.arange(length) >= np.array([*(lengths[:3] // 2), length])[:, None]
    )
    segments = np.minimum(segments & mask, types - 1)
    return {
        "input_ids": (ids * mask).astype(np.int32),
        "input_mask": mask.astype(np.int32),
        "segment_ids": segments.astype(np.int32),
    }


def forward(model, batch):
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


def write_model(folder, name, hparams, vocab_file, weights=None, seed=0):
    """Writes the folder and our outputs on a batch beside it."""
    from electra_tf.checkpoints.huggingface_writer import write_huggingface

    config, model = make_model(hparams, vocab_file)
    weights = weights or random_weights(model, seed)
    for variable in model.variables:
        variable.assign(weights.read(variable.name.split(":")[0]))
    relu = config.model_hparam_overrides.get("hidden_act", "gelu") != "gelu"
    report = write_huggingface(
        weights,
        folder,
        vocab_file=vocab_file,
        hparams=config.as_dict(),
        drop_unrepresentable=relu,
    )
    encoder = model.encoder_config
    length = min(48, encoder.max_position_embeddings)
    batch = make_batch(
        encoder.vocab_size, encoder.type_vocab_size, length, seed
    )
    np.savez(os.path.join(folder, "batch.npz"), **batch)
    outputs = forward(model, batch)
    if relu:  # said in the report: transformers' head has gelu
        outputs.pop("generator")
    size = sum(w.size_in_bytes for w in weights.specs.values())
    print(f"{name}: {size / 4e6:.1f} million values, {len(outputs)} networks")
    return {"name": name, "folder": folder, "weights": weights}, (
        outputs,
        batch["input_mask"],
        dict(report.left_out),
    )


def compare(model, expected, reference):
    """Our outputs and weights beside what transformers made of them."""
    from electra_tf.checkpoints.huggingface_reader import open_huggingface

    outputs, mask, left_out = expected
    found = np.load(os.path.join(model["folder"], "reference.npz"))
    row = {"model": model["name"], "left out": left_out}
    for part, ours in outputs.items():
        theirs = found[part].reshape(ours.shape)
        real = mask.astype(bool)
        row[part] = {
            "max difference": float(np.abs(ours - theirs)[real].max()),
            "largest logit": float(np.abs(ours[real]).max()),
        }
    read = open_huggingface(os.path.join(model["folder"], "saved"))
    weights = model["weights"]
    row["saved: equal to the bit"] = set(read.specs) == set(
        weights.shapes
    ) and all(
        read.read(name).tobytes() == weights.read(name).tobytes()
        for name in read.specs
    )
    row["pickled: equal to the bit"] = reference["pickled"][model["folder"]]
    return row


def compare_tokens(lines, vocab_file, reference):
    """Ids of every line, ours and theirs, counted by category of text."""
    from electra_tf.text.tokenization import FullTokenizer

    ours = FullTokenizer(vocab_file)
    rows = {}
    for name, theirs in reference["tokens"].items():
        differing, examples = collections.Counter(), {}
        for (category, text), ids in zip(lines, theirs, strict=True):
            if ours.encode(text) != ids:
                differing[category] += 1
                examples.setdefault(category, text[:60])
        rows[name] = {
            "lines": len(lines),
            "differing": differing.total(),
            "of": {
                category: f"{count} of {sum(c == category for c, _ in lines)}"
                for category, count in differing.items()
            },
            "examples": examples,
        }
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--reference", required=True, metavar="GOLDEN_DIR")
    parser.add_argument("--output", default="")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args.inside)
    golden = args.reference
    with open(os.path.join(golden, "tokenization_dev.json")) as file:
        lines = [
            (entry["category"], entry["text"])
            for entry in json.load(file)["examples"]
        ]
    with tempfile.TemporaryDirectory() as work:
        models = []
        for i, (name, hparams, vocab, prefix) in enumerate(
            recorded_models(golden)
        ):
            folder = os.path.join(work, f"recorded{i}")
            weights = load(golden, prefix)
            models.append(write_model(folder, name, hparams, vocab, weights, i))
        vocab = os.path.join(golden, "vocab.txt")
        for i, (name, hparams) in enumerate(SHAPES.items()):
            folder = os.path.join(work, f"random{i}")
            models.append(
                write_model(folder, f"random, {name}", hparams, vocab, seed=i)
            )
        results = [
            run_reference(python, work, models, lines, vocab)
            for python in args.python
        ]
    if args.output:
        with open(args.output, "w") as file:
            json.dump(results, file, indent=2)
    worst = [r["worst difference"] for r in results]
    good = all(r["all bits equal"] for r in results)
    return 0 if good and all(w <= BOUND for w in worst) else 1


def run_reference(python, work, models, lines, vocab):
    request = {
        "folders": [model["folder"] for model, _ in models],
        "tokenizer": os.path.join(models[-1][0]["folder"], "discriminator"),
        "lines": [text for _, text in lines],
    }
    path = os.path.join(work, "request.json")
    with open(path, "w") as file:
        json.dump(request, file)
    command = [python, __file__, "--reference", "-", "--inside", path]
    subprocess.run(command, check=True)
    with open(path + ".answer") as file:
        answer = json.load(file)
    rows = [compare(model, outputs, answer) for model, outputs in models]
    result = {
        "versions": answer["versions"],
        "models": rows,
        "tokenizers": compare_tokens(lines, vocab, answer),
        "worst difference": max(
            row[part]["max difference"]
            for row in rows
            for part in PARTS
            if part in row
        ),
        "all bits equal": all(
            row[f"{saved}: equal to the bit"]
            for row in rows
            for saved in ("saved", "pickled")
        ),
    }
    print(json.dumps(result, indent=1))
    return result


# --- inside transformers' environment ----------------------------------------


def inside(path: str) -> int:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    with open(path) as file:
        request = json.load(file)
    answer = {"pickled": {}, "tokens": {}}
    for folder in request["folders"]:
        batch = np.load(os.path.join(folder, "batch.npz"))
        inputs = {
            theirs: torch.tensor(batch[ours]).long()
            for theirs, ours in (
                ("input_ids", "input_ids"),
                ("attention_mask", "input_mask"),
                ("token_type_ids", "segment_ids"),
            )
        }
        outputs = {}
        for part in PARTS:
            if not os.path.isdir(os.path.join(folder, part)):
                continue
            outputs[part] = run_part(folder, part, inputs)
        np.savez(os.path.join(folder, "reference.npz"), **outputs)
        answer["pickled"][folder] = same_when_pickled(folder)
    for name in ("AutoTokenizer", "ElectraTokenizer", "ElectraTokenizerFast"):
        kind = getattr(transformers, name, None)
        if kind is not None:
            tokenizer = kind.from_pretrained(request["tokenizer"])
            label = f"{name} ({type(tokenizer).__name__})"
            answer["tokens"][label] = [
                tokenizer.encode(line, add_special_tokens=False)
                for line in request["lines"]
            ]
    answer["versions"] = {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }
    with open(path + ".answer", "w") as file:
        json.dump(answer, file)
    return 0


def run_part(folder, part, inputs):
    """Loads, refuses any complaint, runs, saves in both formats."""
    import torch
    import transformers

    kind = getattr(transformers, ARCHITECTURES[part])
    model, loading = kind.from_pretrained(
        os.path.join(folder, part), output_loading_info=True
    )
    complaints = {key: list(value) for key, value in loading.items() if value}
    if complaints:
        raise SystemExit(f"{folder}/{part}: {complaints}")
    model.eval()
    with torch.no_grad():
        logits = model(**inputs).logits.numpy()
    model.save_pretrained(os.path.join(folder, "saved", part))
    pickled = os.path.join(folder, "pickled", part)
    os.makedirs(pickled, exist_ok=True)
    model.config.save_pretrained(pickled)
    torch.save(model.state_dict(), os.path.join(pickled, "pytorch_model.bin"))
    return logits


def same_when_pickled(folder: str) -> bool:
    """Whether pytorch_model.bin reads as the safetensors file does."""
    from electra_tf.checkpoints.huggingface_reader import open_huggingface

    one = open_huggingface(os.path.join(folder, "pickled"))
    other = open_huggingface(os.path.join(folder, "saved"))
    return set(one.specs) == set(other.specs) and all(
        one.read(n).tobytes() == other.read(n).tobytes() for n in one.specs
    )


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Train ELECTRA's two networks on images to detect replaced pixels.

The tokens of this study are black and white pixels. A generator samples the
pixels that are hidden from it, and the discriminator classifies every pixel as
replaced or original. Four variants differ in the inputs and the loss of the
generator. A linear probe then compares the discriminator's features of digits
with those of random weights.

    PYTHONPATH=. python examples/replaced_pixels/run.py --data_dir mnist

`mnist` is a folder with the four files of MNIST under their usual names.
results.json, curves.png and pictures.png are written to `--output`. A run takes
some minutes on two cores.
"""

import argparse
import dataclasses
import json
import math
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from configure import flags
from configure.errors import UserError
from configure.text_tables import render_rows
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.figures import encode_png
from electra_tf.files.reading import check_readable
from electra_tf.metrics import trial_statistics

SIDE, CLASSES, CODE = 28, 10, 128
PATCH, OCCLUDED = 4, 0.3  # pixels per side, share of hidden patches
BATCH, SHOWN = 64, 8


@dataclasses.dataclass(frozen=True)
class Variant:
    """The inputs and losses of a generator."""

    unseen: str  # all, patches or lower: pixels that the generator fills in
    # whether the likelihood of the original pixels is maximized, as in ELECTRA
    from_pixels: bool
    # whether the discriminator's gradient is used, as in adversarial networks
    from_discriminator: bool


VARIANTS = {
    "noise": Variant("all", False, True),
    "no_gradient": Variant("all", True, False),
    "occlusion": Variant("patches", True, True),
    "lower_half": Variant("lower", True, True),
}


def read_idx(path: str, *shape: int) -> np.ndarray:
    """Return the content of an idx file of bytes, uint8 [N, *shape]."""
    check_readable(path)
    axes = 1 + len(shape)

    def check(actual: object, expected: object, what: str) -> None:
        if actual != expected:
            raise UserError(
                f"{path}: {what} {actual}; expected {expected}. Restore the"
                " file of MNIST."
            )

    try:
        with filesystem.open_decompressed(path) as file:
            head = file.read(4 + 4 * axes)
            begin = bytes([0, 0, 8, axes])  # 8 means bytes
            check(head[:4].hex(" "), begin.hex(" "), "begins with")
            check(len(head), 4 + 4 * axes, "bytes of header:")
            count, *sizes = struct.unpack(f">{axes}I", head[4:])
            check(sizes, list(shape), "images of the shape")
            size = count * math.prod(shape)
            # One byte more is read, to detect surplus bytes.
            content = file.read(size + 1)
    except filesystem.DECOMPRESSION_ERRORS as error:
        raise UserError(
            f"{path}: cannot be decompressed: {error}. Restore the file of"
            " MNIST."
        ) from error
    check(len(content), max(size, 1), "bytes of data:")
    return np.frombuffer(content, np.uint8).reshape(count, *shape)


def read_split(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images, float32 [N, 28, 28] of 0 and 1, and labels, uint8 [N]."""
    paths = [
        os.path.join(folder, f"{name}-{what}-ubyte.gz")
        for what in ("images-idx3", "labels-idx1")
    ]
    images, labels = read_idx(paths[0], SIDE, SIDE), read_idx(paths[1])
    if len(labels) != len(images):
        raise UserError(
            f"{paths[1]}: {len(labels):,} labels; expected {len(images):,},"
            f" one for each image of {paths[0]}. Restore the files of MNIST."
        )
    if labels.max() >= CLASSES:
        index = int(labels.argmax())
        raise UserError(
            f"{paths[1]}: label {index + 1} is {labels[index]}; expected 0 to"
            f" {CLASSES - 1}. Restore the files of MNIST."
        )
    return (images > 127).astype(np.float32), labels


def make_network(channels: int) -> tf_keras.Model:
    """Return a model from [B, 28, 28, channels] to pixel logits and features.

    Logits are [B, 28, 28], features [B, 128].
    """
    layers = tf_keras.layers

    def conv(kind: Any, *sizes: int) -> Any:
        return kind(*sizes, padding="same", activation="relu")

    pixels = tf_keras.Input([SIDE, SIDE, channels])
    coarse = conv(layers.Conv2D, 16, 5, 2)(pixels)  # [B, 14, 14, 16]
    coarse = conv(layers.Conv2D, 32, 3, 2)(coarse)  # [B, 7, 7, 32]
    features = layers.Dense(CODE, "relu")(layers.Flatten()(coarse))
    # The decoder sees the whole image only through these features.
    whole = layers.Dense(7 * 7 * 16, "relu")(features)
    fine = layers.Reshape([7, 7, 16])(whole)
    fine = conv(layers.Conv2DTranspose, 16, 2, 2)(fine)  # [B, 14, 14, 16]
    fine = conv(layers.Conv2DTranspose, 8, 2, 2)(fine)  # [B, 28, 28, 8]
    fine = layers.Concatenate()([fine, pixels])
    fine = conv(layers.Conv2D, 8, 3)(fine)
    logits = layers.Conv2D(1, 1)(fine)
    return tf_keras.Model(pixels, [logits[..., 0], features])


class Pair:
    """A generator and a discriminator of a variant."""

    def __init__(self, variant: Variant, seed: int) -> None:
        tf_keras.utils.set_random_seed(seed)
        self.variant = variant
        self.discriminator = make_network(1)
        self.generator = make_network(2)
        self._optimizers = [
            tf_keras.optimizers.Adam(1e-3, beta_1=0.5) for _ in range(2)
        ]
        self.step = tf.function(self._step)

    def unseen(self, count: tf.Tensor) -> tf.Tensor:
        """Draw the pixels that the generator fills in, bool [B, 28, 28]."""
        everywhere = tf.ones([count, SIDE, SIDE], tf.bool)
        if self.variant.unseen == "lower":
            return everywhere & (tf.range(SIDE) >= SIDE // 2)[:, None]
        if self.variant.unseen == "patches":
            grid = tf.random.uniform([count, SIDE // PATCH, SIDE // PATCH])
            hidden = tf.repeat(grid < OCCLUDED, PATCH, axis=1)
            return tf.repeat(hidden, PATCH, axis=2)
        return everywhere

    def replace(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        """Fill in images with the generator; all results are [B, 28, 28]."""
        unseen = self.unseen(tf.shape(images)[0])
        seen = tf.where(unseen, tf.random.uniform(tf.shape(images)), images)
        inputs = tf.stack([seen, tf.cast(unseen, tf.float32)], -1)
        logits, _ = self.generator(inputs)
        share = tf.sigmoid(logits)
        drawn = tf.cast(tf.random.uniform(tf.shape(share)) < share, tf.float32)
        # Sampling has no gradient, so the gradient of the probability is used.
        drawn = share + tf.stop_gradient(drawn - share)
        shown = tf.where(unseen, drawn, images)
        # A correctly guessed pixel is not a replacement. If the whole image is
        # generated from noise, there is no original, and every pixel is a
        # replacement.
        replaced = unseen
        if self.variant.unseen != "all":
            replaced &= tf.abs(shown - images) > 0.5
        return {
            "unseen": unseen,
            "seen": seen,
            "logits": logits,
            "shown": shown,
            "replaced": tf.cast(replaced, tf.float32),
        }

    def _step(self, images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Update both networks; return their losses in nats per pixel."""
        entropy = tf.nn.sigmoid_cross_entropy_with_logits
        with tf.GradientTape(persistent=True) as tape:
            made = self.replace(images)
            # Original images are included, so that the position of hidden
            # pixels does not reveal the replacements.
            shown = tf.concat([made["shown"], images], 0)
            labels = tf.concat([made["replaced"], tf.zeros_like(images)], 0)
            logits, _ = self.discriminator(shown[..., None])
            disc_loss = tf.reduce_mean(entropy(labels, logits))
            terms = tf.zeros_like(images)
            if self.variant.from_pixels:
                terms += entropy(images, made["logits"])
            if self.variant.from_discriminator:
                fooled = logits[: tf.shape(images)[0]]
                terms += entropy(tf.zeros_like(fooled), fooled)
            gen_loss = tf.reduce_mean(terms[made["unseen"]])
        networks = (self.generator, self.discriminator)
        for network, loss, optimizer in zip(
            networks, (gen_loss, disc_loss), self._optimizers, strict=True
        ):
            weights = network.trainable_variables
            gradients = tape.gradient(loss, weights)
            pairs = zip(gradients, weights, strict=True)
            optimizer.apply_gradients((g, w) for g, w in pairs if g is not None)
        return gen_loss, disc_loss

    def features(self, images: np.ndarray) -> np.ndarray:
        """Return the discriminator's features of images, float32 [N, 128]."""
        batches = np.array_split(images, -(-len(images) // 500))
        return np.concatenate(
            [self.discriminator(b[..., None])[1].numpy() for b in batches]
        )


def probe(train: np.ndarray, labels: np.ndarray, test: np.ndarray):
    """Predict the digits of `test` by ridge regression, int64 [N]."""
    mean, scale = train.mean(0), train.std(0) + 1e-6
    rows, new = (
        np.pad((x - mean) / scale, [(0, 0), (0, 1)], constant_values=1.0)
        for x in (train, test)
    )
    ridge = rows.T @ rows + 1e-3 * len(rows) * np.eye(rows.shape[1])
    targets = np.eye(CLASSES)[labels]
    return (new @ np.linalg.solve(ridge, rows.T @ targets)).argmax(1)


def compare(values: list[float], base: list[float]) -> dict[str, Any]:
    """Return mean, deviation, and the difference in standard errors (Welch)."""
    variant, other = (
        trial_statistics.describe(values),
        trial_statistics.describe(base),
    )
    error = math.hypot(variant.std, other.std) / math.sqrt(len(values))
    above = variant.mean - other.mean
    return {
        "values": values,
        "mean": variant.mean,
        "std": variant.std,
        "above_random": above,
        "standard_errors": trial_statistics.finite(above / (error or math.nan)),
    }


def draw_pictures(pairs: dict[str, Pair], images: np.ndarray) -> bytes:
    """Return a plot of every variant's outputs for images, [N, 28, 28]."""
    # matplotlib is imported here, because the import takes a second.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4 * len(pairs)), layout="constrained")
    for part, name in zip(figure.subfigures(len(pairs)), pairs, strict=True):
        part.suptitle(name)
        made = pairs[name].replace(tf.constant(images))
        logits, _ = pairs[name].discriminator(made["shown"][..., None])
        rows = {
            "image": images,
            "seen": made["seen"],
            "filled in": made["shown"],
            "replaced": made["replaced"],
            "called\nreplaced": tf.sigmoid(logits),
        }
        for axes, title in zip(part.subplots(len(rows)), rows, strict=True):
            row = np.hstack(np.asarray(rows[title]))
            axes.imshow(row, cmap="gray_r", vmin=0, vmax=1)
            axes.set_ylabel(title, rotation=0, ha="right", va="center")
            axes.set(xticks=[], yticks=[])
    return encode_png(figure)


def draw_curves(losses: dict[str, list[np.ndarray]]) -> bytes:
    """Return a plot of both losses of every variant and seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for column, title in enumerate(("generator", "discriminator")):
        axes = figure.add_subplot(1, 2, column + 1)
        for color, (name, runs) in enumerate(losses.items()):
            style = {"color": f"C{color}", "lw": 0.8}
            for run in runs:
                axes.plot(run[:, column], **style, label=name)
                name = None  # The legend contains each variant once.
        axes.set(title=f"{title}'s loss, nats per pixel", xlabel="step")
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return encode_png(figure)


def main(args: argparse.Namespace) -> None:
    """Train every variant with every seed, probe, and write the results."""
    train, labels = read_split(args.data_dir, "train")
    test, digits = read_split(args.data_dir, "t10k")

    def accuracy(features: Callable[[np.ndarray], np.ndarray]) -> float:
        predicted = probe(features(train), labels, features(test))
        return float((predicted == digits).mean())

    probes: dict[str, list[float]] = {"random": []}
    losses: dict[str, list[np.ndarray]] = {name: [] for name in VARIANTS}
    first: dict[str, Pair] = {}
    for seed in range(1, args.seeds + 1):
        for name, variant in VARIANTS.items():
            pair = Pair(variant, seed)
            if (
                len(probes["random"]) < seed
            ):  # All variants have equal initial weights.
                probes["random"].append(accuracy(pair.features))
            draws = np.random.default_rng(seed)
            steps = []
            for _ in range(args.steps):
                rows = draws.integers(len(train), size=BATCH)
                steps.append(pair.step(tf.constant(train[rows])))
            losses[name].append(np.array(steps))
            probes.setdefault(name, []).append(accuracy(pair.features))
            first.setdefault(name, pair)
            print(f"seed {seed}, {name}: {probes[name][-1]:.4f}", flush=True)
    rows = {name: compare(of, probes["random"]) for name, of in probes.items()}
    for name, runs in losses.items():
        last = np.mean([run[-50:].mean(0) for run in runs], 0)
        rows[name]["gen_loss"], rows[name]["disc_loss"] = last.tolist()
    table = [["features of", "", "accuracy", "above random", "in std. errors"]]
    for name, row in rows.items():
        cells = f"{row['mean']:.4f}", f"{row['above_random']:+.4f}"
        errors = row["standard_errors"]
        errors = "-" if errors is None else f"{errors:+.1f}"
        table.append([name, f"n = {args.seeds}", *cells, errors])
    by_pixels = accuracy(lambda images: images.reshape(len(images), -1))
    table.append(["the pixels", "", f"{by_pixels:.4f}", "", ""])
    print("\n".join(["", *render_rows(table)]))
    results = {"steps": args.steps, "probe": rows, "pixels": by_pixels}
    for name, content in (
        ("results.json", json.dumps(results, indent=1) + "\n"),
        ("curves.png", draw_curves(losses)),
        ("pictures.png", draw_pictures(first, test[:SHOWN])),
    ):
        write_atomically(os.path.join(args.output, name), content)


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data_dir", required=True, help="folder of MNIST")
    parser.add_argument("--output", default="runs/replaced_pixels")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(argv[1:])
    for name in ("steps", "seeds"):
        if getattr(args, name) < 1:
            parser.error(f"--{name}: expected 1 or more. Pass a larger number")
    return args


if __name__ == "__main__":
    flags.run_program(main, parse_flags)

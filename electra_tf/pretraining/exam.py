# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""An exam: the same replacements in held-out text for every discriminator.

Each run's evaluation draws replacements from its own generator, so that the
AUC of two runs are of different questions. An exam is drawn once, by one
trained generator and by token frequency at the same positions, and kept in a
file with the labels and a digest.
"""

import dataclasses
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data.fingerprints import files_fingerprint
from electra_tf.data.input_pipeline import build_dataset
from electra_tf.data.record_files import find_record_files
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_bytes
from electra_tf.modeling.graph_modes import inference
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining import masking, sampling, unigram
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.metrics import binary_entropy, exact_auc

# Who drew the replacements.
SOURCES = ("generator", "unigram")
_FEATURES = ("input_ids", "input_mask", "segment_ids")
_ARRAYS = (
    *_FEATURES,
    *(f"{source}_{kind}" for source in SOURCES for kind in ("ids", "labels")),
)
_REMEDY = "Copy the file again, or draw it again (draw_exam)."


@dataclasses.dataclass(frozen=True)
class Exam:
    """Texts, what replaced their tokens, and how both came about."""

    # int32 [R, L] by name: `input_ids` (the originals), `input_mask`,
    # `segment_ids` and, for each of SOURCES, `<source>_ids` (the corrupted
    # text) and `<source>_labels` (1 where replaced).
    arrays: dict[str, np.ndarray]
    tokens: tuple[str, ...]  # the vocabulary, in the order of ids
    facts: dict[str, Any]  # seed, generator, data: for people

    @property
    def digest(self) -> str:
        """SHA-256 of all arrays and tokens, in hexadecimal."""
        digest = hashlib.sha256("\n".join(self.tokens).encode())
        for name in _ARRAYS:
            array = self.arrays[name]
            digest.update(f"{name} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array, "<i4").tobytes())
        return digest.hexdigest()

    @property
    def length(self) -> int:
        """L, wordpieces of a row."""
        return self.arrays["input_ids"].shape[1]

    def write(self, path: str) -> None:
        """Writes the file; equal exams are equal bytes."""
        about = {"digest": self.digest, "facts": self.facts}
        texts = {"about": json.dumps(about), "tokens": "\n".join(self.tokens)}
        packed = io.BytesIO()
        np.savez_compressed(
            packed,
            **self.arrays,
            **{
                name: np.frombuffer(text.encode(), np.uint8)
                for name, text in texts.items()
            },
        )
        write_atomically(path, packed.getvalue())

    @classmethod
    def read(cls, path: str) -> "Exam":
        """Reads the file; a UserError unless it is whole and unchanged."""
        if not filesystem.exists(path):
            raise UserError(
                f"exam: {path}: no such file. Pass --exam=FILE.npz, a file that"
                " draw_exam wrote."
            )
        content = read_bytes(path)
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as found:
                values = {name: found[name] for name in found.files}
            about = json.loads(values["about"].tobytes())
            exam = cls(
                arrays={name: values[name] for name in _ARRAYS},
                tokens=tuple(values["tokens"].tobytes().decode().split("\n")),
                facts=about["facts"],
            )
            digest = about["digest"]
        # Each damaged byte of an archive raises an error of a kind of its own:
        # zlib's, zipfile's, NotImplementedError, OSError, ...
        except Exception as error:
            raise UserError(
                f"{path}: not a file of draw_exam, or corrupt"
                f" ({type(error).__name__}). {_REMEDY}"
            ) from error
        if exam.digest != digest:
            raise UserError(
                f"{path}: the arrays have the digest {exam.digest[:12]}, but"
                f" the file states {str(digest)[:12]}: it was changed or is"
                f" corrupt. {_REMEDY}"
            )
        return exam

    def check(
        self, path: str, vocab: Mapping[str, int], positions: int
    ) -> None:
        """Raises a UserError unless a model can sit the exam.

        Args:
          path: of this exam, for messages.
          vocab: the model's.
          positions: rows of the model's position table.
        """
        own = sorted(vocab, key=vocab.get)
        if (sizes := (len(self.tokens), len(own)))[0] != sizes[1]:
            raise UserError(
                f"exam: {path} has a vocabulary of {sizes[0]} tokens, the model"
                f" one of {sizes[1]}; draw an exam with the model's vocabulary"
            )
        for number, pair in enumerate(zip(self.tokens, own, strict=True), 1):
            if pair[0] != pair[1]:
                raise UserError(
                    f"exam: token {number} of the vocabulary is {pair[0]!r} in"
                    f" {path}, but {pair[1]!r} in the model's; draw an exam"
                    " with the model's vocabulary"
                )
        if self.length > positions:
            raise UserError(
                f"exam: the rows of {path} have {self.length} wordpieces, the"
                f" model's position table {positions}; draw an exam of shorter"
                " rows (--max_seq_length)"
            )


def draw_exam(
    loaded: PretrainedModel, config: Any, examples: int, seed: int
) -> Exam:
    """Draws an exam from held-out records.

    Positions are chosen as in training, each at most once; both sources
    replace the same ones, and may draw the original token.

    Args:
      loaded: has the generator, or is a masked LM.
      config: a `PretrainingConfig` of the records, with the vocabulary of
        `loaded`; tokens are counted in its training records.
      examples: R, the first of the held-out records.
      seed: of positions and draws.
    """
    loaded.require_generator("drawing an exam")
    found = find_record_files(config, training=False)
    if not found.held_out:
        raise UserError(
            f"eval_tfrecords: no held-out records match"
            f" {config.eval_tfrecords!r}, and an exam is of text that no run"
            " trains on. Build records with --held_out_fraction, or pass"
            " --eval_tfrecords."
        )
    model = loaded.model
    counts = unigram.count_training_tokens(
        config, model.vocab, model.encoder_config.vocab_size
    )
    parts: list[dict[str, np.ndarray]] = []
    missing = examples
    batches = build_dataset(config, 64, training=False)
    for number, features in enumerate(batches):
        features = {n: features[n][:missing] for n in _FEATURES}
        stream = SeedStream(tf.constant([seed, number], tf.int32))
        parts.append(_draw(model, config, features, counts, stream))
        missing -= len(parts[-1]["input_ids"])
        if not missing:
            break
    if missing:
        raise UserError(
            f"examples: {examples} asked for, but the held-out records have"
            f" {examples - missing}; pass --examples={examples - missing}"
        )
    names = parts[0].keys()
    return Exam(
        arrays={n: np.concatenate([part[n] for part in parts]) for n in names},
        tokens=tuple(sorted(model.vocab, key=model.vocab.get)),
        facts={
            "seed": seed,
            # Not the whole path: two machines' equal exams are equal files.
            "generator": "/".join(loaded.path.rstrip("/").split("/")[-2:]),
            "generator_step": loaded.global_step,
            "held_out": files_fingerprint(found.paths),
            "mask_prob": config.mask_prob,
            "temperature": 1.0,
        },
    )


def _draw(
    model: Any,
    config: Any,
    features: Mapping[str, tf.Tensor],
    counts: np.ndarray,
    stream: SeedStream,
) -> dict[str, np.ndarray]:
    """Draws the arrays of a batch of rows."""
    rule = masking.MaskingRule(
        config.mask_prob,
        config.max_predictions_per_seq,
        config.mask_replace_prob,
        without_replacement=True,
    )
    masked = masking.mask_inputs(features, model.special, rule, stream)
    positions = masked["masked_lm_positions"]
    hidden = {**features, "input_ids": masked["input_ids"]}
    with inference():
        logits, _ = model.generator_logits(hidden, positions)
    drawable = unigram.drawable(counts, model.vocab)
    with np.errstate(divide="ignore"):
        likely = tf.constant(np.log(drawable), tf.float32)
    rows = tf.unstack(tf.shape(positions))
    by_source = {
        "generator": logits,
        "unigram": tf.broadcast_to(likely, [*rows, len(drawable)]),
    }
    arrays = {name: np.int32(value) for name, value in features.items()}
    for source in SOURCES:
        site = stream.seed(f"exam_{source}")
        sampled = sampling.sample_from_softmax(
            by_source[source], tf.random.stateless_uniform([*rows, 2], site)
        )
        corrupted = masking.corrupt_inputs(
            features["input_ids"], sampled, positions, sampled_is_fake=False
        )
        arrays[f"{source}_ids"] = np.int32(corrupted.input_ids)
        arrays[f"{source}_labels"] = np.int32(corrupted.is_fake_tokens)
    return arrays


def sit_exam(
    answer: Callable[..., tf.Tensor], exam: Exam, batch_size: int
) -> dict[str, float]:
    """Scores a discriminator, by an exact AUC and the loss over real tokens.

    Args:
      answer: what `discriminator_logits` returns.

    Returns:
      For each source `exam_<source>_auc`, `exam_<source>_loss` (nats a token)
      and `exam_<source>_majority_loss`, that of always answering the share of
      replaced tokens.
    """
    real = exam.arrays["input_mask"] > 0
    result: dict[str, float] = {}
    for source in SOURCES:
        ids = exam.arrays[f"{source}_ids"]
        logits = np.concatenate(
            [
                answer(*(tf.constant(array) for array in rows)).numpy()
                for rows in _cut(
                    batch_size,
                    ids,
                    exam.arrays["input_mask"],
                    exam.arrays["segment_ids"],
                )
            ]
        )
        labels = exam.arrays[f"{source}_labels"][real]
        scores = np.float64(logits[real])
        losses = np.logaddexp(0.0, np.where(labels == 1, -scores, scores))
        result |= {
            f"exam_{source}_auc": exact_auc(labels, logits[real]),
            f"exam_{source}_loss": float(losses.mean()),
            f"exam_{source}_majority_loss": binary_entropy(labels.mean()),
        }
    return result


def discriminator_logits(model: Any) -> Callable[..., tf.Tensor]:
    """Returns a graph of a discriminator's logits, float32 [B, L].

    Its arguments are int32 [B, L] ids, mask and segments.
    """
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(autograph=False, input_signature=[spec] * len(_FEATURES))
    def answer(ids: tf.Tensor, mask: tf.Tensor, segments: tf.Tensor):
        with inference():
            encoded = model.discriminator(ids, mask, segments)
            return model.discriminator_head(encoded.sequence_output)

    return answer


def _cut(size: int, *arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yields batches of rows of all arrays."""
    for start in range(0, len(arrays[0]), size):
        yield [array[start : start + size] for array in arrays]

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exam: held-out text with the same replacements for all discriminators.

The evaluation of a run draws replacements from the run's generator, so the AUCs
of different runs cannot be compared. An exam is drawn once, by a trained
generator and by token frequency at the same positions, and is written to a file
with the labels and a digest.
"""

import dataclasses
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.generator import GeneratorKind
from configure.pretraining import PretrainingConfig
from electra_tf.data.fingerprints import files_fingerprint
from electra_tf.data.input_files import InputFiles
from electra_tf.data.input_pipeline import build_dataset, each_example_once
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_bytes
from electra_tf.metrics.finite_outputs import check_finite
from electra_tf.modeling.graph_modes import inference
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining import masking, sampling, unigram
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.pretraining.metrics import binary_entropy, exact_auc
from electra_tf.pretraining.networks import INPUTS, Features, Networks

# Names of the distributions from which replacements are drawn.
SOURCES = ("generator", "unigram")
_ARRAYS = (
    *INPUTS,
    "generator_ids",
    "generator_labels",
    "unigram_ids",
    "unigram_labels",
)
_REMEDY = "Copy the file again, or draw the exam again (draw_exam)."
# Function from ids, mask and segments (int32 [B, L] each) to logits (float32
# [B, L]).
DiscriminatorLogits = Callable[..., tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Exam:
    """Texts with replaced tokens, and facts about the texts' origin."""

    # int32 [R, L] by name: `input_ids` (original tokens), `input_mask`,
    # `segment_ids` and, for each of SOURCES, `<source>_ids` (corrupted text)
    # and `<source>_labels` (1: replaced).
    arrays: Mapping[str, np.ndarray]
    tokens: tuple[str, ...]  # vocabulary, in the order of ids
    facts: Mapping[str, object]  # seed, generator and data, for human readers

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
        """L, the number of wordpieces in a row."""
        return self.arrays["input_ids"].shape[1]

    def write(self, path: str) -> None:
        """Write the exam to a file; equal exams result in equal bytes."""
        about = {"digest": self.digest, "facts": self.facts}
        packed = io.BytesIO()
        np.savez_compressed(
            packed,
            **self.arrays,
            about=_as_bytes(json.dumps(about)),
            tokens=_as_bytes("\n".join(self.tokens)),
        )
        write_atomically(path, packed.getvalue())

    @classmethod
    def read(cls, path: str) -> "Exam":
        """Read an exam from a file that `write` wrote.

        Raises:
          UserError: the file is missing, corrupt or changed.
        """
        if not filesystem.exists(path):
            raise UserError(
                f"exam: {path}: no such file. Pass --exam=FILE.npz, a file that"
                " draw_exam wrote."
            )
        content = read_bytes(path)
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                values = {name: archive[name] for name in archive.files}
            about = json.loads(values["about"].tobytes())
            exam = cls(
                arrays={name: values[name] for name in _ARRAYS},
                tokens=tuple(values["tokens"].tobytes().decode().split("\n")),
                facts=about["facts"],
            )
            digest = about["digest"]
        # A corrupt byte can cause an error of almost any class, from zlib,
        # zipfile, NumPy or the operating system.
        except Exception as error:
            raise UserError(
                f"{path} is not an exam file of draw_exam, or is corrupt"
                f" ({type(error).__name__}). {_REMEDY}"
            ) from error
        if exam.digest != digest:
            raise UserError(
                f"{path}: the digest of the arrays is {exam.digest[:12]}, but"
                f" the file contains the digest {str(digest)[:12]}. The file"
                f" was changed or is corrupt. {_REMEDY}"
            )
        return exam

    def check(
        self, path: str, vocab: Mapping[str, int], positions: int
    ) -> None:
        """Raise a UserError if the exam does not match a model.

        Args:
          path: path of this exam, for messages.
          vocab: vocabulary of the model, ids by token.
          positions: number of rows in the model's position table.
        """
        model_tokens = sorted(vocab, key=lambda token: vocab[token])
        if len(self.tokens) != len(model_tokens):
            raise UserError(
                f"exam: the vocabulary of {path} has {len(self.tokens)} tokens,"
                f" but the model's vocabulary has {len(model_tokens)}. Draw an"
                " exam with the model's vocabulary."
            )
        pairs = zip(self.tokens, model_tokens, strict=True)
        for number, (token, model_token) in enumerate(pairs, 1):
            if token != model_token:
                raise UserError(
                    f"exam: token {number} of the vocabulary is {token!r} in"
                    f" {path}, but {model_token!r} in the model's vocabulary."
                    " Draw an exam with the model's vocabulary."
                )
        if self.length > positions:
            raise UserError(
                f"exam: the rows of {path} have {self.length} wordpieces, but"
                f" the model's position table has {positions} rows. Draw an"
                " exam with shorter rows (--max_seq_length)."
            )


def _as_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def draw_exam(
    loaded: PretrainedModel, config: PretrainingConfig, examples: int, seed: int
) -> Exam:
    """Draw an exam from held-out records.

    Positions are chosen as in training, but without repetition. Both sources
    replace the same positions, and may draw the original token.

    Args:
      loaded: model with a generator, or masked LM.
      config: config of the records, with the vocabulary of `loaded`; tokens are
        counted in its training records.
      examples: R, number of records from the first.
      seed: seed of positions and draws.

    Raises:
      UserError: the model has no generator, an output of the generator is
        infinite or NaN, or held-out records are too few.
    """
    loaded.require_generator("drawing an exam")
    record_files = InputFiles.of(config).find_records(training=False)
    if not record_files.held_out:
        raise UserError(
            "eval_tfrecords: no held-out records match"
            f" {config.eval_tfrecords!r}; expected records on which no run"
            " trains. Build records with --held_out_fraction, or pass"
            " --eval_tfrecords."
        )
    model = loaded.model
    counts = unigram.count_training_tokens(
        each_example_once(config, batch_size=1024),
        model.vocab,
        model.encoder_config.vocab_size,
    )
    rule = dataclasses.replace(
        masking.MaskingRule.of(config),
        without_replacement=True,
        whole_words=False,
    )
    parts: list[dict[str, np.ndarray]] = []
    missing = examples
    batches = build_dataset(config, 64, training=False)
    for number, features in enumerate(batches):
        features = {name: features[name][:missing] for name in INPUTS}
        stream = SeedStream(tf.constant([seed, number], tf.int32))
        first_row = examples - missing + 1
        parts.append(_draw(model, rule, features, counts, stream, first_row))
        missing -= len(parts[-1]["input_ids"])
        if not missing:
            break
    if missing:
        raise UserError(
            f"examples is {examples}, but only {examples - missing} held-out"
            f" records exist. Pass --examples={examples - missing}, or build"
            " more records."
        )
    names = parts[0].keys()
    return Exam(
        arrays={n: np.concatenate([part[n] for part in parts]) for n in names},
        tokens=tuple(sorted(model.vocab, key=lambda token: model.vocab[token])),
        facts={
            "seed": seed,
            # With the whole path, equal exams from two machines would differ.
            "generator": "/".join(loaded.path.rstrip("/").split("/")[-2:]),
            "generator_step": loaded.global_step,
            "held_out": files_fingerprint(record_files.paths),
            "mask_prob": config.mask_prob,
            "temperature": 1.0,
        },
    )


def _draw(
    networks: Networks,
    rule: masking.MaskingRule,
    features: Features,
    counts: np.ndarray,
    stream: SeedStream,
    first_row: int,
) -> dict[str, np.ndarray]:
    """Return the arrays of an exam for one batch of records.

    Args:
      networks: model with a generator.
      rule: rule by which positions are chosen.
      features: int32 [B, L], the batch.
      counts: int64 [V], counts of the training records' tokens.
      stream: seeds of positions and draws.
      first_row: number (from 1) of the batch's first record, for messages.
    """
    masked = masking.mask_inputs(features, networks.special, rule, stream)
    positions = masked["masked_lm_positions"]
    # Two towers predict each token from the others and read no [MASK].
    visible = features
    if networks.kind is not GeneratorKind.TWO_TOWER:
        visible = {**features, "input_ids": masked["input_ids"]}
    with inference():
        logits, _ = networks.generator_logits(visible, positions)
    # All draws from NaN would be token 0.
    check_finite(
        {"generator_logits": logits.numpy()},
        lambda row: f"held-out record {first_row + row}",
    )
    drawable = unigram.drawable(counts, networks.vocab)
    with np.errstate(divide="ignore"):
        unigram_logits = tf.constant(np.log(drawable), tf.float32)
    rows = tf.unstack(tf.shape(positions))
    logits_by_source = {
        "generator": logits,
        "unigram": tf.broadcast_to(unigram_logits, [*rows, len(drawable)]),
    }
    arrays = {
        name: np.asarray(value, np.int32) for name, value in features.items()
    }
    for source in SOURCES:
        site = stream.seed(f"exam_{source}")
        sampled = sampling.sample_from_softmax(
            logits_by_source[source],
            tf.random.stateless_uniform([*rows, 2], site),
        )
        corrupted = masking.corrupt_inputs(
            features["input_ids"], sampled, positions, sampled_is_fake=False
        )
        arrays[f"{source}_ids"] = np.asarray(corrupted.input_ids, np.int32)
        arrays[f"{source}_labels"] = np.asarray(
            corrupted.is_fake_tokens, np.int32
        )
    return arrays


def sit_exam(
    compute_logits: DiscriminatorLogits, exam: Exam, batch_size: int
) -> dict[str, float]:
    """Return a discriminator's exact AUC and loss over the exam's tokens.

    Args:
      compute_logits: result of `discriminator_logits`.
      exam: exam that matches the model.
      batch_size: B, number of rows that are computed at once.

    Returns:
      For each source `exam_<source>_auc`, `exam_<source>_loss` (nats per token)
      and `exam_<source>_majority_loss`, the loss of always predicting the share
      of replaced tokens.
    """
    real = exam.arrays["input_mask"] > 0
    result: dict[str, float] = {}
    for source in SOURCES:
        batches = _batches(
            batch_size,
            exam.arrays[f"{source}_ids"],
            exam.arrays["input_mask"],
            exam.arrays["segment_ids"],
        )
        parts = []
        for batch in batches:
            tensors = [tf.constant(array) for array in batch]
            parts.append(compute_logits(*tensors).numpy())
        logits = np.concatenate(parts)
        # NaN has ranks like a number, so the AUC would be finite.
        check_finite(
            {f"{source}_logits": logits}, lambda row: f"exam, row {row + 1}"
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


def discriminator_logits(networks: Networks) -> DiscriminatorLogits:
    """Return a graph that computes a discriminator's logits."""
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(autograph=False, input_signature=[spec] * len(INPUTS))
    def compute_logits(ids: tf.Tensor, mask: tf.Tensor, segments: tf.Tensor):
        with inference():
            encoded = networks.discriminator(ids, mask, segments)
            return networks.discriminator_head(encoded.sequence_output)

    return compute_logits


def _batches(size: int, *arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yield the rows of all arrays in batches."""
    for start in range(0, len(arrays[0]), size):
        yield [array[start : start + size] for array in arrays]

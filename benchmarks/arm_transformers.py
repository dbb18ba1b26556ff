# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of transformers on PyTorch, as a careful user would write them.

The arms use scaled-dot-product attention, fused AdamW, clipping and a linear
schedule; batches are padded to their longest row. transformers has ELECTRA's
two networks, but no pre-training, so it is written here: embeddings are shared,
and only masked tokens are mapped to the vocabulary. `--variants` may set these
fields of the spec: `compile` for torch.compile, `by_length` to sort the rows of
an evaluation by length.
"""

import itertools
import os

import harness
import numpy as np
import tokenizers
import torch
import transformers
import work
from torch.nn import functional

NETWORKS = {
    "generator": transformers.ElectraForMaskedLM,
    "discriminator": transformers.ElectraForPreTraining,
}


class Arm(work.Trainer):
    """Base class of training arms; a subclass defines models and `_compute`."""

    PACKAGES = ("transformers", "torch")

    def __init__(self, spec):
        # The call imports the libraries, whose memory is measured next.
        self._kinds()
        self.imported = harness.process_memory()["now"]
        torch.set_num_threads(spec["threads"])
        torch.manual_seed(0)
        self._work, self._spec = spec["work"], spec
        self._models = [
            kind._from_config(
                transformers.ElectraConfig(
                    **self._work[role],
                    embedding_size=self._work["embedding_size"],
                ),
                attn_implementation="sdpa",
            ).train()
            for role, kind in self._kinds().items()
        ]
        values = self._prepare()
        self._module = torch.nn.ModuleList(self._models)
        self._weights = list(self._module.parameters())
        groups = {True: [], False: []}
        for name, weight in self._module.named_parameters():
            plain = "LayerNorm" in name or name.endswith("bias")
            groups[not plain].append(weight)
        self._optimizer = torch.optim.AdamW(
            [
                {"params": weights, "weight_decay": decays * work.WEIGHT_DECAY}
                for decays, weights in groups.items()
            ],
            lr=values["rate"],
            eps=1e-6,
            fused=True,
        )
        schedule = transformers.get_linear_schedule_with_warmup
        steps = (values["warmup"], values["steps"])
        self._schedule = schedule(self._optimizer, *steps)
        self._loss = self._compute
        if spec.get("compile"):
            self._loss = torch.compile(self._compute)

    def weights(self):
        return self._weights

    def losses(self, steps):
        self._module.train()
        return [float(loss) for loss in [self._step() for _ in range(steps)]]

    def _step(self):
        batch = next(self._batches)
        with self._autocast():
            loss = self._loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights, work.CLIP_NORM)
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _autocast(self):
        half = self._spec["precision"] == "bf16"
        return torch.autocast("cpu", torch.bfloat16, enabled=half)


class Pretraining(Arm):
    def _kinds(self):
        return NETWORKS

    def _prepare(self):
        generator, discriminator = self._models
        shared = discriminator.electra.embeddings
        generator.electra.embeddings = shared
        generator.generator_lm_head.weight = shared.word_embeddings.weight
        batch = work.make_batch(self._work)
        self._batches = itertools.repeat(
            {n: torch.from_numpy(array).long() for n, array in batch.items()}
        )
        self._rows = torch.arange(self._work["batch"])[:, None]
        return work.PRETRAINING

    def _compute(self, batch):
        generator, discriminator = self._models
        hidden = generator.electra(
            batch["masked_ids"],
            attention_mask=batch["input_mask"],
            token_type_ids=batch["segment_ids"],
        )[0]
        # Only one position in seven is masked, so the masked positions are
        # selected before the projection.
        picked = hidden[self._rows, batch["positions"]]
        logits = generator.generator_lm_head(
            generator.generator_predictions(picked)
        ).float()
        loss = functional.cross_entropy(
            logits.flatten(0, 1), batch["labels"].flatten()
        )
        with torch.no_grad():
            noise = torch.rand_like(logits) + 1e-9  # Gumbel noise
            noise = -torch.log(-torch.log(noise) + 1e-9)
            corrupted = batch["input_ids"].scatter(
                1, batch["positions"], (logits + noise).argmax(-1)
            )
            replaced = (corrupted != batch["input_ids"]).long()
        output = discriminator(
            corrupted,
            attention_mask=batch["input_mask"],
            token_type_ids=batch["segment_ids"],
            labels=replaced,
        )
        return loss + work.DISC_WEIGHT * output.loss


class Finetuning(Arm):
    def _kinds(self):
        return {"encoder": transformers.ElectraForSequenceClassification}

    def _prepare(self):
        self._classify = self._models[0]
        if self._spec.get("compile"):
            self._classify = torch.compile(self._classify)
        self._batches = itertools.cycle(self._rows("train"))
        self.dev = self._rows("dev", bool(self._spec.get("by_length")))
        return work.FINETUNING

    def evaluate(self):
        self._module.eval()
        with torch.inference_mode(), self._autocast():
            return super().evaluate()

    def answer(self, batch):
        return self._classify(**batch).logits.float().numpy()

    def _compute(self, batch):
        return self._models[0](**batch).loss

    def _rows(self, split, by_length=False):
        names = ("input_ids", "attention_mask", "token_type_ids", "labels")
        more = {"by_length": by_length, "names": names}
        batches = work.make_batches(self._work, split, **more)
        return [
            {
                name: torch.from_numpy(array).long()
                for name, array in batch.items()
            }
            for batch in batches
        ]


class Checkpoints(work.Checkpoints, Pretraining):
    """Both networks, which are saved to separate folders and loaded again."""

    def write(self, folder):
        for role, model in zip(self._kinds(), self._models, strict=True):
            model.save_pretrained(os.path.join(folder, role))

    def read(self, folder):
        for role, kind in self._kinds().items():
            kind.from_pretrained(os.path.join(folder, role))


class Answering(work.Answering):
    # The head is one dense layer on the first token, as in this project,
    # because the head of transformers computes more.
    PACKAGES = ("torch", "transformers", "tokenizers")

    def load(self, spec):
        torch.set_num_threads(spec["threads"])
        folder = spec["paths"]["huggingface"]
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.ElectraForSequenceClassification.from_pretrained(
            folder, num_labels=work.LABELS, attn_implementation="sdpa"
        )
        with np.load(os.path.join(folder, "head.npz")) as stored:
            dense = torch.nn.Linear(*stored["kernel"].shape)
            with torch.no_grad():
                dense.weight.copy_(torch.from_numpy(stored["kernel"].T))
                dense.bias.copy_(torch.from_numpy(stored["bias"]))
        model.classifier = _FirstTokenHead(dense)
        model.eval()
        if spec.get("compile"):
            model = torch.compile(model, dynamic=True)

        def ask(texts):
            with torch.inference_mode():
                inputs = tokenizer(
                    texts,
                    padding=True,
                    truncation=True,
                    max_length=spec["length"],
                    return_tensors="pt",
                )
                return model(**inputs).logits.softmax(-1).numpy()

        return ask


class _FirstTokenHead(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.dense = dense

    def forward(self, features):
        return self.dense(features[:, 0])


class Tokenizers(work.Tokenizers):
    """Three ways to call the tokenizer of the library `tokenizers`."""

    def __init__(self, spec):
        super().__init__(spec, ("encode", "encode_batch", "encode_batch_fast"))

    def encoder(self, name, file):
        tokenizer = tokenizers.BertWordPieceTokenizer(file)
        plain = {"add_special_tokens": False}
        if name == "encode":
            encode = tokenizer.encode
            return lambda lines: [encode(line, **plain).ids for line in lines]
        fast = name == "encode_batch_fast"
        encode = getattr(tokenizer._tokenizer if fast else tokenizer, name)
        return lambda lines: [
            encoding.ids for encoding in encode(lines, **plain)
        ]


class Parity:
    """An arm that runs converted folders; see huggingface_parity.py."""

    def __init__(self, spec):
        transformers.logging.set_verbosity_error()

    def describe(self):
        return {"versions": harness.versions("transformers", "torch", "numpy")}

    def outputs(self, folder):
        """Load a folder's models, run batch.npz, save outputs and models.

        Any warning of the loading is an error.
        """
        names, logits = ("input_ids", "attention_mask", "token_type_ids"), {}
        with np.load(os.path.join(folder, "batch.npz")) as batch:
            inputs = [torch.tensor(array).long() for array in batch.values()]
        for part in set(NETWORKS) & set(os.listdir(folder)):
            model, loading = NETWORKS[part].from_pretrained(
                os.path.join(folder, part), output_loading_info=True
            )
            if complaints := {k: list(v) for k, v in loading.items() if v}:
                raise RuntimeError(f"{folder}/{part}: {complaints}")
            named = dict(zip(names, inputs, strict=True))
            with torch.no_grad():
                logits[part] = model.eval()(**named).logits.numpy()
            model.save_pretrained(os.path.join(folder, "saved", part))
        np.savez(os.path.join(folder, "theirs.npz"), **logits)


if __name__ == "__main__":
    harness.serve()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of pretraining_step.py: ELECTRA of transformers, on PyTorch.

transformers has the two networks but no pre-training; this is the step as a
careful user writes it: embeddings shared, only the masked positions go to the
vocabulary, scaled-dot-product attention, fused AdamW.
"""

import pretraining_work
import workers


class Arm:
    """A model in training.

    Args:
      spec: `work`, `precision`, `threads`; `sampling` gumbel, multinomial or
        inverse (one uniform number per position, looked up in the cumulative
        probabilities); `compile` for torch.compile.
    """

    def __init__(self, spec):
        import torch
        import transformers

        models = (
            transformers.ElectraForMaskedLM,
            transformers.ElectraForPreTraining,
        )
        self.imported = workers.process_memory()["now"]
        torch.set_num_threads(spec["threads"])
        torch.manual_seed(0)
        self._work = work = spec["work"]
        self._precision = spec["precision"]
        self._sample = _SAMPLERS[spec.get("sampling", "gumbel")]
        self._generator, self._discriminator = (
            model._from_config(
                transformers.ElectraConfig(
                    **work[role], embedding_size=work["embedding_size"]
                ),
                attn_implementation="sdpa",
            ).train()
            for model, role in zip(
                models, ("generator", "discriminator"), strict=True
            )
        )
        shared = self._discriminator.electra.embeddings
        self._generator.electra.embeddings = shared
        self._generator.generator_lm_head.weight = shared.word_embeddings.weight
        self._weights = list(
            torch.nn.ModuleList(
                [self._generator, self._discriminator]
            ).parameters()
        )
        self._optimizer, self._schedule = self._make_optimizer()
        batch = pretraining_work.make_batch(work)
        self._batch = {
            name: torch.from_numpy(array).long()
            for name, array in batch.items()
        }
        self._rows = torch.arange(work["batch"])[:, None]
        self._losses = self._compute
        if spec.get("compile"):
            self._losses = torch.compile(self._compute)

    def describe(self):
        """Parameters, versions, memory after the imports."""
        import comparing
        import torch

        return {
            "parameters": sum(w.numel() for w in self._weights),
            "versions": comparing.versions("transformers", "torch"),
            "imported": self.imported,
            "threads": torch.get_num_threads(),
            "attention": self._discriminator.config._attn_implementation,
        }

    def run(self, steps):
        """Trains; returns seconds per step."""
        return pretraining_work.timed_steps(self.losses, steps)

    def losses(self, steps):
        """Trains; returns the total loss of each step."""
        return [float(loss) for loss in [self._step() for _ in range(steps)]]

    def matrix_rates(self, precision):
        """Operations per second of PyTorch's matrix products."""
        import torch

        dtype = torch.bfloat16 if precision == "bf16" else torch.float32

        def multiply(m, k, n):
            a = torch.randn(m, k).to(dtype)
            b = torch.randn(k, n).to(dtype)
            return lambda: torch.matmul(a, b)

        shapes = pretraining_work.matrix_shapes(self._work)
        return pretraining_work.best_rates(multiply, shapes)

    def _make_optimizer(self):
        import torch
        import transformers

        decayed, spared = [], []
        for module in (self._discriminator, self._generator):
            for name, weight in module.named_parameters():
                known = any(weight is w for w in decayed + spared)
                if not known:
                    plain = "LayerNorm" in name or name.endswith("bias")
                    (spared if plain else decayed).append(weight)
        optimizer = torch.optim.AdamW(
            [
                {
                    "params": decayed,
                    "weight_decay": pretraining_work.WEIGHT_DECAY,
                },
                {"params": spared, "weight_decay": 0.0},
            ],
            lr=pretraining_work.LEARNING_RATE,
            eps=1e-6,
            fused=True,
        )
        return optimizer, transformers.get_linear_schedule_with_warmup(
            optimizer,
            pretraining_work.WARMUP_STEPS,
            pretraining_work.TRAIN_STEPS,
        )

    def _step(self):
        import torch

        with torch.autocast(
            "cpu", torch.bfloat16, enabled=self._precision == "bf16"
        ):
            loss = self._losses()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(
            self._weights, pretraining_work.CLIP_NORM
        )
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _compute(self):
        """The joint loss of the batch."""
        import torch
        from torch.nn import functional

        batch, generator = self._batch, self._generator
        hidden = generator.electra(
            batch["masked_ids"],
            attention_mask=batch["input_mask"],
            token_type_ids=batch["segment_ids"],
        )[0]
        # Before the vocabulary, not after: one position in seven.
        picked = hidden[self._rows, batch["positions"]]
        logits = generator.generator_lm_head(
            generator.generator_predictions(picked)
        ).float()
        flat = logits.flatten(0, 1)
        loss = functional.cross_entropy(flat, batch["labels"].flatten())
        with torch.no_grad():
            sampled = self._sample(logits)
            corrupted = batch["input_ids"].scatter(
                1, batch["positions"], sampled
            )
            replaced = (corrupted != batch["input_ids"]).long()
        judged = self._discriminator(
            corrupted,
            attention_mask=batch["input_mask"],
            token_type_ids=batch["segment_ids"],
            labels=replaced,
        )
        return loss + pretraining_work.DISC_WEIGHT * judged.loss


def _gumbel(logits):
    import torch

    noise = -torch.log(-torch.log(torch.rand_like(logits) + 1e-9) + 1e-9)
    return (logits + noise).argmax(-1)


def _multinomial(logits):
    import torch

    flat = logits.softmax(-1).flatten(0, 1)
    return torch.multinomial(flat, 1).view(logits.shape[:-1])


def _inverse(logits):
    import torch

    summed = logits.softmax(-1).cumsum(-1)
    drawn = torch.rand(*logits.shape[:-1], 1) * summed[..., -1:]
    found = torch.searchsorted(summed, drawn)[..., 0]
    return found.clamp(max=logits.shape[-1] - 1)


_SAMPLERS = {
    "gumbel": _gumbel,
    "multinomial": _multinomial,
    "inverse": _inverse,
}

if __name__ == "__main__":
    workers.serve(Arm)

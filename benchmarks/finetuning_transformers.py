# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of finetuning_step.py: ElectraForSequenceClassification on PyTorch.

As a careful user writes it: scaled-dot-product attention, fused AdamW,
clipping, a linear schedule; batches are padded to their longest row.
"""

import itertools

import finetuning_work
import workers


class Arm:
    """A classifier in training.

    Args:
      spec: `work`, `precision`, `threads`; `by_length` to sort the rows of an
        evaluation by length, `compile` for torch.compile.
    """

    def __init__(self, spec):
        import torch
        import transformers

        model = transformers.ElectraForSequenceClassification
        self.imported = workers.process_memory()["now"]
        if spec["threads"]:
            torch.set_num_threads(spec["threads"])
        torch.manual_seed(0)
        self._work = work = spec["work"]
        self._precision = spec["precision"]
        self._model = model._from_config(
            transformers.ElectraConfig(
                **work["encoder"],
                embedding_size=work["embedding_size"],
                num_labels=finetuning_work.LABELS,
            ),
            attn_implementation="sdpa",
        )
        self._run = self._model
        if spec.get("compile"):
            self._run = torch.compile(self._model, dynamic=True)
        self._make_optimizer(torch, transformers)
        self._train = itertools.cycle(self._batches("train"))
        self._dev = self._batches("dev", by_length=spec.get("by_length"))

    def describe(self):
        """Parameters, versions, memory after the imports."""
        import comparing
        import torch

        return {
            "parameters": sum(w.numel() for w in self._model.parameters()),
            "versions": comparing.versions("transformers", "torch"),
            "imported": self.imported,
            "threads": torch.get_num_threads(),
            "attention": self._model.config._attn_implementation,
        }

    def train(self, steps):
        """Trains; returns seconds per step."""
        return finetuning_work.timed(lambda: self.losses(steps)) / steps

    def losses(self, steps):
        """Trains; returns the loss of each step."""
        self._model.train()
        return [float(loss) for loss in [self._step() for _ in range(steps)]]

    def evaluate(self):
        """Evaluates; returns seconds per row and rows; reads predictions."""
        import torch

        self._model.eval()
        read = []

        def run():
            with torch.inference_mode(), self._autocast():
                for batch in self._dev:
                    found = self._run(**batch)
                    read.extend(found.logits.float().numpy())

        seconds = finetuning_work.timed(run)
        return {"seconds": seconds / len(read), "rows": len(read)}

    def _step(self):
        import torch

        with self._autocast():
            loss = self._run(**next(self._train)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(
            self._model.parameters(), finetuning_work.CLIP_NORM
        )
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _autocast(self):
        import torch

        return torch.autocast(
            "cpu", torch.bfloat16, enabled=self._precision == "bf16"
        )

    def _make_optimizer(self, torch, transformers):
        groups = {True: [], False: []}
        for name, weight in self._model.named_parameters():
            plain = "LayerNorm" in name or name.endswith("bias")
            groups[plain].append(weight)
        decays = {True: 0.0, False: finetuning_work.WEIGHT_DECAY}
        self._optimizer = torch.optim.AdamW(
            [
                {"params": weights, "weight_decay": decays[plain]}
                for plain, weights in groups.items()
            ],
            lr=finetuning_work.LEARNING_RATE,
            eps=1e-6,
            fused=True,
        )
        self._schedule = transformers.get_linear_schedule_with_warmup(
            self._optimizer,
            finetuning_work.WARMUP_STEPS,
            finetuning_work.TRAIN_STEPS,
        )

    def _batches(self, split, by_length=False):
        import torch

        names = {
            "input_ids": "input_ids",
            "input_mask": "attention_mask",
            "segment_ids": "token_type_ids",
            "labels": "labels",
        }
        made = finetuning_work.make_batches(
            self._work, split, by_length=bool(by_length)
        )
        return [
            {
                theirs: torch.from_numpy(found[ours]).long()
                for ours, theirs in names.items()
            }
            for found in made
        ]


if __name__ == "__main__":
    workers.serve(Arm)

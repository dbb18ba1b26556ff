# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of prediction.py: transformers with its fast tokenizer, on PyTorch.

As its documents say: AutoTokenizer, padding to the longest of a batch,
inference mode, scaled-dot-product attention. The head is one dense layer on
the first token, as ours: less work than the one of transformers.
"""

import os
import time

import workers


class Arm:
    """A loaded classifier.

    Args:
      spec: `paths`, `threads`, `length`; `compile` for torch.compile.
    """

    def __init__(self, spec):
        started = time.perf_counter()
        import numpy as np
        import torch
        import transformers

        if spec["threads"]:
            torch.set_num_threads(spec["threads"])
        folder = spec["paths"]["huggingface"]
        self._length = spec["length"]
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self._model = (
            transformers.ElectraForSequenceClassification.from_pretrained(
                folder, num_labels=2, attn_implementation="sdpa"
            ).eval()
        )
        with np.load(os.path.join(folder, "head.npz")) as stored:
            head = torch.nn.Linear(*stored["weight"].shape[::-1])
            with torch.no_grad():
                head.weight.copy_(torch.from_numpy(stored["weight"]))
                head.bias.copy_(torch.from_numpy(stored["bias"]))
        self._model.classifier = _first_token_head(head)
        if spec.get("compile"):
            self._model = torch.compile(self._model, dynamic=True)
        self._ask(["loaded"])
        self._start = time.perf_counter() - started

    def describe(self):
        """Versions, and seconds from nothing to the first answer."""
        import comparing
        import torch

        return {
            "start": self._start,
            "versions": comparing.versions(
                "torch", "transformers", "tokenizers"
            ),
            "threads": torch.get_num_threads(),
            "attention": self._model.config._attn_implementation,
            "fast tokenizer": self._tokenizer.is_fast,
        }

    def run(self, batches):
        """Answers batches one after the other; returns seconds of each."""
        seconds = []
        for texts in batches:
            started = time.perf_counter()
            self._ask(texts)
            seconds.append(time.perf_counter() - started)
        return seconds

    def probabilities(self, texts):
        """Probabilities of the classes, a list for each text."""
        return self._ask(texts).tolist()

    def _ask(self, texts):
        import torch

        with torch.inference_mode():
            inputs = self._tokenizer(
                texts,
                padding=True,
                truncation=True,
                max_length=self._length,
                return_tensors="pt",
            )
            return self._model(**inputs).logits.softmax(-1).numpy()


def _first_token_head(dense):
    import torch

    class FirstTokenHead(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = dense

        def forward(self, features):
            return self.dense(features[:, 0])

    return FirstTokenHead()


if __name__ == "__main__":
    workers.serve(Arm)

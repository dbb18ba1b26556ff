# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Jobs of transformers: it saves folders and computes answers.

Usage: python transformers_side.py JOBS.json

This Python has transformers. Each job is a list of the name of a function below
and its keyword arguments.
"""

import json
import os
import sys

import numpy as np
import torch
import transformers


def random_model(case):
    """Return a model with random weights of a scale that hides no layer."""
    torch.manual_seed(case["seed"])
    config = transformers.ElectraConfig(**case["config"])
    model = getattr(transformers, case["architecture"])(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape)
            noise *= parameter.shape[-1] ** -0.5
            parameter.copy_(noise + parameter.mean().round())
    return model


def save_models(cases, inputs_path):
    """Save random models, each with its outputs in float32."""
    arrays = np.load(inputs_path)
    for case in cases:
        model = random_model(case)
        if case.get("tables_of"):
            kind = transformers.ElectraForPreTraining
            other = kind.from_pretrained(case["tables_of"])
            tables = other.electra.embeddings.state_dict()
            model.electra.embeddings.load_state_dict(tables)
        model.to(getattr(torch, case.get("dtype", "float32")))
        size = case.get("max_shard_size", "5GB")
        model.save_pretrained(case["folder"], max_shard_size=size)
        if case.get("stated"):  # fields of older versions of transformers
            path = os.path.join(case["folder"], "config.json")
            with open(path, encoding="utf-8") as file:
                stated = json.load(file) | case["stated"]
            with open(path, "w", encoding="utf-8") as file:
                json.dump(stated, file)
        model = model.float()
        ids = torch.tensor(arrays["input_ids"], dtype=torch.long)
        types = torch.tensor(arrays["segment_ids"], dtype=torch.long)
        if case["architecture"] == "ElectraForTokenClassification":
            types *= 0  # Pipelines of transformers give no other types.
        batch = {
            "input_ids": ids % model.config.vocab_size,
            "attention_mask": torch.tensor(arrays["input_mask"]),
            "token_type_ids": types % model.config.type_vocab_size,
        }
        if case["architecture"] == "ElectraForMultipleChoice":
            model = model.electra
        with torch.no_grad():
            answers = model(**batch, output_hidden_states=True)
        outputs = {
            name: answers[name].numpy()
            for name in ("logits", "start_logits", "end_logits")
            if answers.get(name) is not None
        }
        outputs["hidden"] = answers.hidden_states[-1].numpy()
        np.savez(os.path.join(case["folder"], "answers.npz"), **outputs)


def save_again(folders):
    """Save models and tokenizers that transformers reads."""
    for folder, out in folders:
        config = transformers.AutoConfig.from_pretrained(folder)
        kind = getattr(transformers, config.architectures[0])
        kind.from_pretrained(folder).save_pretrained(out)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(out)


def tag(folder, sentences, out):
    """Write the labels of words, by the tokenizer of the folder."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = transformers.AutoModelForTokenClassification
    model = name.from_pretrained(folder).eval()
    tags = []
    settings = {"is_split_into_words": True, "return_tensors": "pt"}
    for sentence in sentences:
        batch = tokenizer(sentence, **settings)
        positions, seen = [], set()
        for i, word in enumerate(batch.word_ids()):
            if word is not None and word not in seen:
                seen.add(word)
                positions.append(i)
        with torch.no_grad():
            best = model(**batch).logits[0].argmax(-1)
        tags.append([model.config.id2label[int(best[i])] for i in positions])
    write(out, tags)


def classify(folder, texts, out):
    """Write the labels and logits of texts or pairs."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = transformers.AutoModelForSequenceClassification
    model, answers = name.from_pretrained(folder).eval(), []
    for text in texts:
        batch = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            logits = model(**batch).logits[0]
        label = model.config.id2label[int(logits.argmax())]
        answers.append([label, logits.tolist()])
    write(out, answers)


def find_spans(folder, pairs, out):
    """Write wordpieces of question and context, start and end logits."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = transformers.AutoModelForQuestionAnswering
    model, spans = name.from_pretrained(folder).eval(), []
    for pair in pairs:
        batch = tokenizer(*pair, return_tensors="pt")
        with torch.no_grad():
            answers = model(**batch)
        logits = answers.start_logits[0], answers.end_logits[0]
        ids = batch["input_ids"][0].tolist()
        spans.append([ids, *(scores.tolist() for scores in logits)])
    write(out, spans)


def make_models(cases, vocab):
    """Save random models with a tokenizer of a vocabulary."""
    for case in cases:
        model = random_model(case)
        model.save_pretrained(case["folder"], **case.get("saved", {}))
        tokenizer = transformers.BertTokenizer(vocab, **case["tokenizer"])
        tokenizer.save_pretrained(case["folder"])


def answer(folder, items, out, step=None):
    """Write a model's outputs of texts, pairs, or lists of words.

    Each answer has ids, numbers of words, offsets of characters, and outputs,
    with a row for each window. `step` is the count of wordpieces between the
    starts of windows; without it each item has one window.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0])
    model, answers = model.from_pretrained(folder).eval(), []
    # The rounding of kernels depends on a tensor's alignment, which in a mapped
    # file depends on the length of the header.
    for parameter in model.parameters():
        parameter.data = parameter.data.clone()
    length = min(tokenizer.model_max_length, config.max_position_embeddings)
    settings = {"max_length": length, "truncation": True}
    if step is not None:
        settings |= {"truncation": "only_second", "padding": True}
        settings |= {"return_overflowing_tokens": True}
    for item in items:
        if step is not None:
            question = tokenizer(item[0], add_special_tokens=False).input_ids
            room = length - 3 - len(question)
            settings["stride"] = max(0, room - step)
        texts = item if isinstance(item[0], str) else [item[0]]
        split = not isinstance(item[0], str)
        encoded = tokenizer(
            *texts,
            is_split_into_words=split,
            return_offsets_mapping=True,
            return_tensors="pt",
            **settings,
        )
        names = ("input_ids", "attention_mask", "token_type_ids")
        with torch.no_grad():
            outputs = model(**{name: encoded[name] for name in names})
        windows = range(len(encoded["input_ids"]))
        answers.append(
            {
                "ids": encoded["input_ids"].tolist(),
                "mask": encoded["attention_mask"].tolist(),
                "offsets": encoded["offset_mapping"].tolist(),
                "words": [encoded.word_ids(i) for i in windows],
                "sequences": [encoded.sequence_ids(i) for i in windows],
                **{
                    name: value.tolist()
                    for name, value in outputs.items()
                    if name.endswith(("logits", "last_hidden_state"))
                },
            }
        )
    write(out, answers)


def write(path, content):
    """Write JSON."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def main():
    """Run the jobs."""
    with open(sys.argv[1], encoding="utf-8") as file:
        for name, keywords in json.load(file):
            globals()[name](**keywords)


if __name__ == "__main__":
    main()

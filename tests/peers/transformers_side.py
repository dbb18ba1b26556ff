# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run by a Python that has transformers: folders it saves, answers it gives.

python transformers_side.py JOBS.json, a list of [name of a function, keywords].
"""

import json
import os
import sys

import numpy as np
import torch
import transformers


def random_model(case):
    """Returns a model of random weights, of the scale that hides no layer."""
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
        if case.get("stated"):  # what older versions of transformers stated
            path = os.path.join(case["folder"], "config.json")
            with open(path, encoding="utf-8") as file:
                stated = json.load(file) | case["stated"]
            with open(path, "w", encoding="utf-8") as file:
                json.dump(stated, file)
        model = model.float()
        ids = torch.tensor(arrays["input_ids"], dtype=torch.long)
        types = torch.tensor(arrays["segment_ids"], dtype=torch.long)
        if case["architecture"] == "ElectraForTokenClassification":
            types *= 0  # All that its pipelines give; we read it so.
        batch = {
            "input_ids": ids % model.config.vocab_size,
            "attention_mask": torch.tensor(arrays["input_mask"]),
            "token_type_ids": types % model.config.type_vocab_size,
        }
        if case["architecture"] == "ElectraForMultipleChoice":
            model = model.electra
        with torch.no_grad():
            answers = model(**batch, output_hidden_states=True)
        found = {
            name: answers[name].numpy()
            for name in ("logits", "start_logits", "end_logits")
            if answers.get(name) is not None
        }
        found["hidden"] = answers.hidden_states[-1].numpy()
        np.savez(os.path.join(case["folder"], "answers.npz"), **found)


def save_again(folders):
    """Has transformers save models and tokenizers that it reads."""
    for folder, out in folders:
        config = transformers.AutoConfig.from_pretrained(folder)
        kind = getattr(transformers, config.architectures[0])
        kind.from_pretrained(folder).save_pretrained(out)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(out)


def tag(folder, sentences, out):
    """Labels of words, by the folder's own tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = transformers.AutoModelForTokenClassification
    model = name.from_pretrained(folder).eval()
    tags = []
    for words in sentences:
        batch = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        places, seen = [], set()
        for i, word in enumerate(batch.word_ids()):
            if word is not None and word not in seen:
                seen.add(word)
                places.append(i)
        with torch.no_grad():
            best = model(**batch).logits[0].argmax(-1)
        tags.append([model.config.id2label[int(best[i])] for i in places])
    write(out, tags)


def classify(folder, texts, out):
    """Labels and logits of texts or pairs."""
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
    """Wordpieces of question and context, start and end logits."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = transformers.AutoModelForQuestionAnswering
    model, found = name.from_pretrained(folder).eval(), []
    for pair in pairs:
        batch = tokenizer(*pair, return_tensors="pt")
        with torch.no_grad():
            answers = model(**batch)
        logits = answers.start_logits[0], answers.end_logits[0]
        ids = batch["input_ids"][0].tolist()
        found.append([ids, *(one.tolist() for one in logits)])
    write(out, found)


def make_models(cases, vocab):
    """Saves random models with a tokenizer of a vocabulary."""
    for case in cases:
        model = random_model(case)
        model.save_pretrained(case["folder"], **case.get("saved", {}))
        tokenizer = transformers.BertTokenizer(vocab, **case["tokenizer"])
        tokenizer.save_pretrained(case["folder"])


def answer(folder, items, out, step=None):
    """What a model says of texts, pairs, or lists of words.

    Of each: ids, words' numbers, characters' offsets, and the outputs, a row a
    window. Without a `step` (wordpieces between windows) there is one window.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0])
    model, found = model.from_pretrained(folder).eval(), []
    # Kernels round by a tensor's alignment, which in a mapped file follows from
    # the length of the header.
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
        found.append(
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
    write(out, found)


def write(path, content):
    """Writes JSON."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def main():
    """Does the jobs."""
    with open(sys.argv[1], encoding="utf-8") as file:
        for name, keywords in json.load(file):
            globals()[name](**keywords)


if __name__ == "__main__":
    main()

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""All classes of transformers' ELECTRA give equal answers without conversion.

Commands, an export and its server answer; a model that is converted back equals
the first one to the bit.
"""

import json
import pathlib
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, softmax

from configure.errors import UserError
from electra_tf.commands import (
    convert_checkpoint,
    embed,
    export_model,
    fill_mask,
    inspect_tokens,
    predict,
)
from electra_tf.extras.serving.served_model import open_model
from electra_tf.inspection.fill_mask import encode
from electra_tf.prediction.answers import make_answerer
from electra_tf.prediction.loading import FinetunedModel, load
from electra_tf.text.vocabulary import load_vocab
from tests.conftest import read_json
from tests.extras.serving.conftest import Running

pytestmark = pytest.mark.heavy
WITHIN = 1e-4
LENGTH = 40
SIZES = {
    "embedding_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
SENTENCES = "ElectraForSequenceClassification"
NAMES = {0: "bad", 1: "good", 2: "so-so"}
TAGS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
# Class and fields of its config, by name.
MODELS = {
    "classes": (SENTENCES, {"num_labels": 3, "id2label": NAMES}),
    "labels": (
        SENTENCES,
        {"num_labels": 3, "problem_type": "multi_label_classification"},
    ),
    "number": (SENTENCES, {"num_labels": 1, "id2label": {0: "stars"}}),
    "tags": (
        "ElectraForTokenClassification",
        {"num_labels": 5, "id2label": TAGS},
    ),
    "answers": ("ElectraForQuestionAnswering", {}),
    "replaced": ("ElectraForPreTraining", {}),
    "masked": ("ElectraForMaskedLM", {}),
    "encoder": ("ElectraModel", {}),
}
CASES = [f"{name}-{case}" for name in MODELS for case in ("cased", "uncased")]
TEXTS = [
    "",
    "a",
    " ",
    "The king of the north is in the city.",
    "THE KING OF THE NORTH",
    "the king, the city; the time!",
    "It's the king's city, isn't it?",
    "don't you... think so?!",
    "in 1999 there were 12,345.67 of them",
    "e-mail: king@city.org, see https://city.org/north?a=1&b=2",
    "\N{GRINNING FACE}",
    "the king \N{GRINNING FACE}\N{THUMBS UP SIGN} is happy",
    "\N{FAMILY} \N{WOMAN}\N{ZERO WIDTH JOINER}\N{MAN} in the city",
    (
        "\N{REGIONAL INDICATOR SYMBOL LETTER D}"
        "\N{REGIONAL INDICATOR SYMBOL LETTER E}"
    ),
    "\N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4} yes",
    "\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16} love",
    (
        "\u0627\u0644\u0645\u0644\u0643 \u0641\u064a \u0627\u0644\u0645"
        "\u062f\u064a\u0646\u0629"
    ),
    "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 the king",
    "\u0661\u0662\u0663 \u0627\u0644\u0634\u0645\u0627\u0644\u060c \u061f",
    "\u738b\u306f\u5317\u306e\u753a\u306b\u3044\u308b\u3002",
    "\u30ad\u30f3\u30b0 \u306f\u3001\u753a\u306e\u4e2d",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u3078\u884c\u304d\u307e\u3057\u305f",
    "\u56fd\u738b\u5728\u5317\u65b9\u7684\u57ce\u5e02",
    "\uc655\uc740 \ub3c4\uc2dc\uc5d0 \uc788\ub2e4",
    (
        "\u041a\u043e\u0440\u043e\u043b\u044c \u0432 \u0433\u043e\u0440"
        "\u043e\u0434\u0435"
    ),
    (
        "\u039f \u03b2\u03b1\u03c3\u03b9\u03bb\u03b9\u03ac\u03c2 \u03c4"
        "\u03b7\u03c2 \u03c0\u03cc\u03bb\u03b7\u03c2"
    ),
    "\u05d4\u05de\u05dc\u05da \u05d1\u05e2\u05d9\u05e8",
    (
        "\u0930\u093e\u091c\u093e \u0936\u0939\u0930 \u092e\u0947\u0902 "
        "\u0939\u0948"
    ),
    (
        "\u0e1e\u0e23\u0e30\u0e23\u0e32\u0e0a\u0e32\u0e2d\u0e22\u0e39\u0e48"
        "\u0e43\u0e19\u0e40\u0e21\u0e37\u0e2d\u0e07"
    ),
    "caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u00dcbermut",
    "cafe\u0301 nai\u0308ve re\u0301sume\u0301",
    "Stra\u00dfe, \u00c6r\u00f8 and \u0141\u00f3d\u017a",
    "\u0130stanbul \u0131\u015f\u0131k",
    "\ufb01ne \ufb02ow \uff21\uff22\uff23",
    "tab\tand\nline\r\nends",
    "no-break\u00a0space and thin\u2009space",
    "zero\u200bwidth soft\u00adhyphen",
    "control\u0000and\u0007bell \ufffd",
    "\u201cquoted\u201d \u2018words\u2019 \u2014 and \u2026",
    "$5 + \u20ac3 = \u00a37 ^ ~ ` |",
    "math \u2211 \u222b \u221a \u2264 \u00b1 \U0001d400",
    "##ing ## a##b",
    "[UNK] and [CLS x]",
    "the [mask] of",
    "x" * 90,
    "a.b.c.d.e.f",
    "the king of the north " * 30,
    "\u738b\u5317" * 60,
    "\N{GRINNING FACE} " * 70,
    "to be or not to be, that is the question " * 8,
]
# Second texts of pairs, in another order.
SECOND = [text for text in TEXTS[::-1] if text.strip()]
MASKED = [f"{text[:60]} [MASK] of" for text in TEXTS]


def test_there_are_fifty_texts():
    assert len(TEXTS) == len({*TEXTS}) == 50


def pairs():
    """Return questions with contexts that fit, or exceed every limit."""
    questions = []
    for i, text in enumerate(SECOND):
        question = "who is in the city" if i % 2 else "wo?"
        questions.append([question, f"{text} the king of the north"])
    return questions


def items_of(name):
    """Return the inputs of a model in transformers' form."""
    if name == "tags":
        return [[text.split()] for text in TEXTS if text.split()]
    if name == "answers":
        return pairs()
    if name in ("classes", "labels", "number"):
        together = [
            [a, b] for a, b in zip(TEXTS[::3], SECOND, strict=False) if a
        ]
        return [[text] for text in TEXTS] + together
    return [[text] for text in (MASKED if name == "masked" else TEXTS)]


PARTS = {"replaced": "discriminator", "masked": "generator"}
STEP = (LENGTH - 3) // 2  # wordpieces between windows over a passage


@pytest.fixture(scope="module")
def made(tmp_path_factory, tiny_vocab, transformers):
    """Return a folder of all models and answers, also of conversions back."""
    root = tmp_path_factory.mktemp("models")
    tokens = [*load_vocab(tiny_vocab)]
    chars = {*"".join([*TEXTS, *(text.lower() for text in TEXTS)])}
    chars |= {*unicodedata.normalize("NFD", "".join(sorted(chars)))}
    chars = [c for c in sorted(chars) if c.isprintable() and c != " "]
    tokens += [t for c in chars for t in (c, f"##{c}") if t not in tokens]
    vocab = root / "vocab.txt"
    vocab.write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    cases, jobs = [], []
    for name, (architecture, config) in MODELS.items():
        for i, casing in enumerate(("cased", "uncased")):
            folder = root / f"{name}-{casing}"
            sizes = {**SIZES, "vocab_size": len(tokens)}
            cases.append(
                {
                    "folder": str(folder),
                    "architecture": architecture,
                    "config": sizes | config,
                    "seed": len(cases),
                    "tokenizer": {
                        "do_lower_case": bool(i),
                        "model_max_length": LENGTH,
                    },
                    # Some models are saved in shards.
                    "saved": {"max_shard_size": "20KB"} if i else {},
                }
            )
            asked = {"folder": str(folder), "items": items_of(name)}
            asked["step"] = STEP if name == "answers" else None
            jobs.append(("answer", asked | {"out": f"{folder}.json"}))
    transformers(("make_models", {"cases": cases, "vocab": str(vocab)}), *jobs)
    again = []
    for _, asked in jobs:
        back = f"{asked['folder']}-back"
        # The one network of a pre-trained model goes into the folder itself.
        part = PARTS.get(pathlib.Path(back).name.split("-")[0], "all")
        flags = ["--output_format=huggingface", f"--part={part}"]
        argv = ["", asked["folder"], back, *flags]
        convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
        again.append(
            ("answer", asked | {"folder": back, "out": f"{back}.json"})
        )
    transformers(*again)
    return root


def run(command, *arguments):
    argv = ["electra", *map(str, arguments)]
    return command.main(command.parse_flags(argv))


@pytest.fixture
def asked(made, tmp_path):
    """Return a function that runs a command: answers by number of the item."""

    def ask(command, name, items, *flags):
        path, out = tmp_path / "items.jsonl", tmp_path / "answers.jsonl"
        lines = [json.dumps(item | {"n": i}) for i, item in enumerate(items)]
        path.write_text("\n".join(lines))
        run(
            command,
            path,
            f"--model={made / name}",
            f"--output={out}",
            "--id_column=n",
            "--overwrite",
            *flags,
        )
        answers = map(json.loads, out.read_text().splitlines())
        return {answer["id"]: answer for answer in answers}

    return ask


@pytest.fixture
def served(made, tmp_path):
    """Return a function that exports a model: its function, and a server's."""
    running = []

    def make(name, signature="serve_text", head=None):
        folder, settings = tmp_path / name, [f"--head={head}"] if head else []
        run(
            export_model,
            f"--model={made / name}",
            f"--output_dir={folder}",
            *settings,
        )
        loaded = tf.saved_model.load(str(folder / "1"))
        function = loaded.signatures[signature]
        running.append(Running(open_model(str(folder))))

        def export(**columns):
            columns = {n: tf.constant(v) for n, v in columns.items()}
            return {n: v.numpy() for n, v in function(**columns).items()}

        def server(**columns):
            request = {"signature_name": signature, "inputs": columns}
            status, answer = running[-1].predict(request, name)
            assert status == 200, answer
            return answer["outputs"]

        export.loaded = loaded
        return export, server

    yield make
    for started in running:
        started.stop()


def peer_answers(made, name):
    """Return transformers' answers."""
    return json.loads((made / f"{name}.json").read_text())


def rows_of(loaded, item):
    """Return the wordpieces of an item, a row per window."""
    if not isinstance(loaded, FinetunedModel):
        if "[MASK]" in item["text"]:
            return [[*encode(loaded, item["text"])]]
        vocab = loaded.tokenizer.vocab
        ids = loaded.tokenizer.encode(item["text"])[: LENGTH - 2]
        return [[vocab["[CLS]"], *ids, vocab["[SEP]"]]]
    answerer = make_answerer(loaded.task(), 1)
    rows = loaded.task().featurize(answerer.example(item, 0), False)
    rows = rows if isinstance(rows, list) else [rows]
    return [row["input_ids"][: sum(row["input_mask"])] for row in rows]


def same_pieces(made, name, items):
    """Return the numbers of items with equal wordpieces; print the others."""
    vocab, same = [*load_vocab(str(made / "vocab.txt"))], []
    loaded, answers = load(str(made / name)), peer_answers(made, name)
    for i, (answer, item) in enumerate(zip(answers, items, strict=True)):
        pairs = zip(answer["ids"], answer["mask"], strict=True)
        expected = [ids[: sum(mask)] for ids, mask in pairs]
        try:
            rows = rows_of(loaded, item)
        except UserError as error:
            print(f"{name}, item {i}: {error}")
            continue
        if rows == expected:
            same.append(i)
            continue
        ours, peer = ([vocab[n] for n in ids[0]] for ids in (rows, expected))
        shorter = min(len(ours), len(peer))
        where = [j for j in range(shorter) if ours[j] != peer[j]]
        at = where[0] if where else shorter
        print(f"{name}, item {i}: {ours[at : at + 4]}, {peer[at : at + 4]}")
    print(f"{name}: the same wordpieces of {len(same)} of {len(items)} items")
    return same


def largest_gap(actual, expected):
    return float(
        np.abs(np.asarray(actual) - np.asarray(expected)).max(initial=0)
    )


def check(name, worst, count, least):
    print(f"{name}: {count} answers, {worst:.1e} at most from transformers'")
    assert count >= least and worst <= WITHIN


CASINGS = ("cased", "uncased")


@pytest.mark.parametrize("casing", CASINGS)
@pytest.mark.parametrize("name", ["classes", "labels", "number"])
def test_texts_and_pairs_have_equal_answers(name, casing, made, asked, served):
    name = f"{name}-{casing}"
    texts = items_of(name.split("-")[0])
    items = [dict(zip(("text", "text_pair"), t, strict=False)) for t in texts]
    same, peer = same_pieces(made, name, items), peer_answers(made, name)
    answers = asked(predict, name, items)
    columns = {
        "text": [item["text"] for item in items],
        "text_pair": [item.get("text_pair", "") for item in items],
    }
    export, server = served(name)
    exported, answered = export(**columns), server(**columns)
    key = "scaled" if name.startswith("number") else "logits"
    worst = 0.0
    for i in same:
        logits = np.array(peer[i]["logits"][0])
        if key == "scaled":
            expected, actual = logits[0], answers[i]["value"]
        else:
            share = softmax if name.startswith("classes") else expit
            expected, actual = share(logits), answers[i]["probabilities"]
            actual = [*actual.values()]
        outputs = logits if key == "logits" else logits[0]
        worst = max(
            worst,
            largest_gap(actual, expected),
            largest_gap(exported[key][i], outputs),
            largest_gap(answered[key][i], outputs),
        )
    config = read_json(made / name / "config.json")
    if name.startswith("classes"):
        assert [*answers[1]["probabilities"]] == [*config["id2label"].values()]
    check(name, worst, len(same), 55)


@pytest.mark.parametrize("casing", CASINGS)
def test_tags_of_words_are_equal(casing, made, asked, served):
    name = f"tags-{casing}"
    items = [{"words": sentence} for (sentence,) in items_of("tags")]
    same, peer = same_pieces(made, name, items), peer_answers(made, name)
    answers = asked(predict, name, items)
    export, server = served(name, "serve_words")
    texts = ["\n".join(item["words"]) for item in items]
    exported, answered = export(words=texts), server(words=texts)
    worst, tags, expected_tags = 0.0, [], []
    for i in same:
        numbers = peer[i]["words"][0]
        for word in sorted({*numbers} - {None}):
            logits = np.array(peer[i]["logits"][0][numbers.index(word)])
            tags.append(answers[i]["tags"][word])
            expected_tags.append(TAGS[int(logits.argmax())])
            share = answers[i]["probabilities"][word]
            worst = max(
                worst,
                abs(share - softmax(logits).max()),
                largest_gap(exported["logits"][i][word], logits),
                largest_gap(answered["logits"][i][word], logits),
            )
    assert tags == expected_tags
    check(name, worst, len(tags), 150)


def best_spans(answer):
    """Return the best score by transformers' logits, and all spans with it.

    Several spans of characters have it if a text repeats itself. As in
    run_qa.py, the 20 best starts and ends of each window are candidates, and a
    span counts in the window that shows most around its first wordpiece.
    """
    most, spans, inside = {}, [], []
    for number, sequences in enumerate(answer["sequences"]):
        inside.append([j for j, n in enumerate(sequences) if n == 1])
        count = len(inside[-1])
        for k, j in enumerate(inside[-1]):
            offset = tuple(answer["offsets"][number][j])
            shown = min(k, count - 1 - k) + 0.01 * count, -number
            most[offset] = max(most.get(offset, shown), shown)
    for number, indices in enumerate(inside):
        offsets = answer["offsets"][number]
        starts, ends = (
            np.array(answer[f"{name}_logits"][number])
            for name in ("start", "end")
        )
        # [CLS] is a candidate, too, but no answer.
        best = [
            sorted([0, *indices], key=lambda j, x=logits: -x[j])[:20]
            for logits in (starts, ends)
        ]
        for i in best[0]:
            is_here = i and most[tuple(offsets[i])][1] == -number
            for j in best[1] if is_here else ():
                if j and i <= j < i + 30:
                    span = offsets[i][0], offsets[j][1]
                    spans.append((starts[i] + ends[j], span))
    score, _ = max(spans)
    return score, [span for other, span in spans if score - other < 1e-5]


@pytest.mark.parametrize("casing", CASINGS)
def test_answers_to_questions_are_equal(casing, made, asked, served):
    name = f"answers-{casing}"
    items = [{"question": q, "context": c} for q, c in items_of("answers")]
    same, peer = same_pieces(made, name, items), peer_answers(made, name)
    answers = asked(predict, name, items)
    export, server = served(name)
    columns = {n: [item[n] for item in items] for n in ("question", "context")}
    exported, answered = export(**columns), server(**columns)
    worst, different = 0.0, []
    for i in same:
        score, spans = best_spans(peer[i])
        ours, context = answers[i], items[i]["context"]
        texts = {context[start:end] for start, end in spans}
        answer_texts = {
            ours["answer"],
            answered["answer"][i],
            exported["answer"][i].decode(),
        }
        if (ours["start"], ours["end"]) not in spans or answer_texts - texts:
            different.append((i, ours, answer_texts, texts))
        scores = [ours["score"], exported["score"][i], answered["score"][i]]
        worst = max(worst, largest_gap(scores, score))
    assert different == []
    check(name, worst, len(same), 30)


@pytest.mark.parametrize("casing", CASINGS)
def test_probabilities_of_replaced_tokens_are_equal(
    casing, made, served, tmp_path
):
    name = f"replaced-{casing}"
    items = [{"text": text} for text in TEXTS]
    same, peer = same_pieces(made, name, items), peer_answers(made, name)
    path, out = tmp_path / "items.jsonl", tmp_path / "out.jsonl"
    path.write_text("\n".join(json.dumps(TEXTS[i]) for i in same))
    flags = (f"--model={made / name}", f"--json={out}", "--mask_none")
    run(inspect_tokens, path, *flags)
    records = map(json.loads, out.read_text().splitlines())
    seen = {record["text"]: record for record in records}
    export, server = served(name, head="replaced_tokens")
    exported, answered = export(text=TEXTS), server(text=TEXTS)
    worst = 0.0
    for i in same:
        expected = expit(np.array(peer[i]["logits"][0]))
        count = len(expected)
        for actual in (exported, answered):
            row = actual["replaced"][i][:count]
            worst = max(worst, largest_gap(row, expected))
        if TEXTS[i] in seen:
            tokens = seen[TEXTS[i]]["tokens"]
            row = [t["prediction"]["replaced_probability"] for t in tokens]
            worst = max(worst, largest_gap(row, expected))
    print(f"{name}: {len(seen)} texts inspected")
    check(name, worst, len(same), 35)


@pytest.mark.parametrize("casing", CASINGS)
def test_candidates_of_masks_are_equal(casing, made, asked, served):
    name = f"masked-{casing}"
    items = [{"text": text} for text in MASKED]
    same, peer = same_pieces(made, name, items), peer_answers(made, name)
    filled = asked(fill_mask, name, items)
    export, server = served(name, head="fill_mask")
    exported, answered = export(text=MASKED), server(text=MASKED)
    mask_id = [*load_vocab(str(made / "vocab.txt"))].index("[MASK]")
    worst = 0.0
    for i in same:
        position = peer[i]["ids"][0].index(mask_id)
        expected = softmax(np.array(peer[i]["logits"][0][position]))
        candidates = filled[i]["masks"][0]["candidates"]
        for candidate in candidates:
            share = expected[candidate["token_id"]]
            worst = max(worst, abs(candidate["probability"] - share))
        for actual in (exported, answered):
            ids = np.array(actual["token_ids"][i][0])
            row = actual["probabilities"][i][0]
            worst = max(worst, largest_gap(row, expected[ids]))
    check(name, worst, len(same), 35)


@pytest.mark.parametrize("casing", CASINGS)
def test_vectors_are_equal(casing, made, served, tmp_path):
    name = f"encoder-{casing}"
    items = [{"text": text} for text in TEXTS]
    same, peer = same_pieces(made, name, items), peer_answers(made, name)
    path, out = tmp_path / "items.jsonl", tmp_path / "out.npy"
    path.write_text("\n".join(json.dumps(item) for item in items))
    run(embed, path, f"--model={made / name}", f"--output={out}")
    vectors = np.load(out)
    export, server = served(name, head="encoder")
    exported, answered = export(text=TEXTS), server(text=TEXTS)
    worst = 0.0
    for i in same:
        hidden = np.array(peer[i]["last_hidden_state"][0])
        worst = max(worst, largest_gap(vectors[i], hidden.mean(0)))
        for actual in (exported, answered):
            pooled = actual["pooled_output"][i]
            worst = max(worst, largest_gap(pooled, hidden[0]))
            row = actual["sequence_output"][i][: len(hidden)]
            worst = max(worst, largest_gap(row, hidden))
    check(name, worst, len(same), 35)


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_read_back_to_the_bit(case, made):
    first, back = peer_answers(made, case), peer_answers(made, f"{case}-back")
    names = [n for n in first[0] if n.endswith(("logits", "hidden_state"))]
    same = [
        i
        for i, (a, b) in enumerate(zip(first, back, strict=True))
        if a["ids"] == b["ids"]
    ]
    different = [
        (i, name)
        for i in same
        for name in names
        if first[i][name] != back[i][name]
    ]
    assert different == []
    folders = [made / n for n in (case, f"{case}-back")]
    config, config_back = (read_json(f / "config.json") for f in folders)
    assert config_back["architectures"] == config["architectures"]
    if config.get("id2label"):
        assert config_back["id2label"] == config["id2label"]
    lengths = [
        read_json(folder / "tokenizer_config.json")["model_max_length"]
        for folder in folders
    ]
    assert lengths == [LENGTH, LENGTH]
    count = len(same)
    print(f"{case}: outputs of {count} of {len(first)} items equal to the bit")
    assert count >= len(first) - 2

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Further cases for `fuzzing.py`: studies, `ask`, `ensemble`, tokenizers.

Files are opened as commands open them, in one process. Mistakes are made in the
text of a file, or in the values of its JSON, so that the parser accepts them.
"""

import functools
import io
import json
import os
import shutil
import zipfile

import tokenizers
from faults import fresh, read, start, study_file, write

from electra_tf.extras.ask.index import open_index
from electra_tf.extras.ensemble.predictions import open_task, read_predictions
from electra_tf.extras.study import report
from electra_tf.extras.study.runner import StudyRunner
from electra_tf.extras.study.study_file import Study
from electra_tf.files.digests import write_digests
from electra_tf.pretraining.unigram import read_counts
from electra_tf.text.opening import open_tokenizer
from electra_tf.training.cluster import read_cluster

STUDIED, ASKED, PREDICTED = "made/studied", "made/asked", "made/predicted"
COUNTED, BPE = "made/counted", "made/bpe"


def make_extras():
    """Make the files that these cases damage, unless the files exist."""
    if os.path.exists("made/extras"):
        return
    write(f"{STUDIED}/study.json", study_file("made", f"{STUDIED}/out"))
    if start(f"study {STUDIED}/study.json").wait():
        raise SystemExit(read("said"))
    for name in "ab":
        write(f"{ASKED}/texts/{name}.txt", read(f"made/corpus/{name}.txt"))
    indexed(ASKED)
    fresh(PREDICTED)
    for name in ("first", "second"):
        shutil.copy(f"made/{name}.jsonl", PREDICTED)
    counts = json.dumps({"counts": [17 * i % 91 for i in range(200)]})
    write(f"{COUNTED}/token_counts.json", counts)
    write_digests(COUNTED)
    made = tokenizers.ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    text = "the king of the north is in the city, and that was for her. "
    made.train_from_iterator(
        [text], vocab_size=290, min_frequency=1, special_tokens=special
    )
    fresh(BPE)
    made.save(f"{BPE}/tokenizer.json")
    write("made/extras", "yes")


# Functions that open damaged files.


def studied(folder):
    study = Study(f"{folder}/study.json", f"{folder}/out")
    lines = StudyRunner(study, 60, 60).lines
    report.write(study, lines, {})
    table = read(f"{folder}/out/study.json")
    return [sorted(lines), table, read(f"{folder}/out/study.txt")]


def indexed(folder):
    index = open_index(
        f"{folder}/texts", f"{folder}/t.index", "english", lambda text: None
    )
    passages = [index.search(q, 5) for q in ("the king", "no (12)")]
    return repr([passages, index.passages])


def ensembled(folder):
    task = open_task("made", "sst", "made/vocab.txt", None)
    paths = [f"{folder}/{name}.jsonl" for name in ("first", "second")]
    predictions = read_predictions(task, "dev", paths)
    return repr([stack.tolist() for stack in predictions.stacks])


def counted(folder):
    return read_counts(f"{folder}/token_counts.json", 200).tolist()


def encoded(folder):
    tokenizer = open_tokenizer(f"{folder}/tokenizer.json")
    return tokenizer.encode("the king of the north was in 12 cities.")


DAMAGED_EXTRAS = {  # Values have the fields of `DAMAGED` in fuzzing.py.
    "study's files": (
        STUDIED,
        r"study\.jsonl|out/.*log\.jsonl|study\.json",
        studied,
        80,
    ),
    "ask's index": (ASKED, r"t\.index", indexed, 80),
    "ensemble's files": (PREDICTED, r".*\.jsonl", ensembled, 80),
    "token counts": (COUNTED, r"token_counts\.json", counted, 80),
    "digests": (COUNTED, r"digests\.json", counted, 80),
    "tokenizer.json of BPE": (BPE, r"tokenizer\.json", encoded, 80),
    "tokenizer.json of Hugging Face": (
        "made/one",
        r"tokenizer\.json",
        lambda folder: open_tokenizer(f"{folder}/vocab.txt").encode("of 12."),
        80,
    ),
}

# Random mistakes in JSON files that describe studies, tasks or tokenizers.

VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1,
    0.5,
    1e308,
    2**31,
    2**63,
    10**30,
    "",
    "x",
]
VALUES += [float("nan"), float("inf"), [], {}, [[]], {"x": {}}, [None], "\0"]
VALUES += ["../..", "/dev/zero", "/proc/self", "é\ud800", "9" * 5000, "[PAD]"]
DEEP = functools.reduce(lambda value, _: [value], range(120), [])
CLUSTER = {
    "cluster": {"worker": ["a:1", "b:2"], "chief": ["c:3"], "ps": ["d:4"]},
    "task": {"type": "worker", "index": 1},
}


def mutated(draw, value):
    """Return JSON with different values, keys or branches in some places."""
    if draw.random() < 0.06:
        return draw.choice([*VALUES, DEEP])
    if isinstance(value, dict):
        items = [(key, mutated(draw, item)) for key, item in value.items()]
        if items and draw.random() < 0.08:
            del items[draw.randrange(len(items))]
        if items and draw.random() < 0.08:
            key, item = draw.choice(items)
            items.append((draw.choice((key + "x", "", "é", key.upper())), item))
        return dict(items)
    if isinstance(value, list):
        few = draw.random() < 0.9 or len(value) < 50
        items = [mutated(draw, i) if few else i for i in value[:300]]
        items += value[300:]
        if items and draw.random() < 0.08:
            items.append(draw.choice(items))
        return items
    if draw.random() < 0.04 and isinstance(value, int | float):
        return draw.choice((-value, value * 10**9, value + 0.5, str(value)))
    return value


def mistaken(draw, text, nonsense):
    """Return a JSON text as bytes, with mistakes in values or characters."""
    if draw.random() < 0.75:
        value = json.loads(text)
        for _ in range(draw.randint(1, 2)):
            value = mutated(draw, value)
        text = json.dumps(value)
    if draw.random() < 0.3:
        return nonsense(draw, text.encode("utf-8", "surrogatepass"))
    return text.encode("utf-8", "surrogatepass")


def fuzz_study(draw, nonsense):
    text = read(f"{STUDIED}/study.json")
    write("fuzzed/study.json", mistaken(draw, text, nonsense))
    if draw.random() < 0.5:
        lines = read(f"{STUDIED}/study.jsonl").splitlines()
        lines = [mistaken(draw, line, nonsense) for line in lines]
        write("fuzzed/study.jsonl", b"\n".join(lines))
        write("fuzzed/study.json", text)
        study = Study("fuzzed/study.json", "fuzzed/out")
        report.text_of(
            study, report.compare(study, StudyRunner(study, 1, 1).lines)
        )
        return
    Study("fuzzed/study.json", "fuzzed/out")


def fuzz_tokenizer(draw, nonsense):
    source = draw.choice((f"{BPE}/tokenizer.json", "made/one/tokenizer.json"))
    write("fuzzed/tokenizer.json", mistaken(draw, read(source), nonsense))
    path = "tokenizer.json"
    if source.startswith("made/one"):
        shutil.copy("made/one/vocab.txt", "fuzzed")
        if draw.random() < 0.5:
            settings = read("made/one/tokenizer_config.json")
            settings = mistaken(draw, settings, nonsense)
            write("fuzzed/tokenizer_config.json", settings)
        path = "vocab.txt"
    open_tokenizer(f"fuzzed/{path}").encode("The king was in 12 cities, [SEP]")


def fuzz_cluster(draw, nonsense):
    text = mistaken(draw, json.dumps(CLUSTER), nonsense)
    read_cluster(text.decode("utf-8", "surrogateescape"))


def fuzz_index(draw, nonsense):
    """Open an index that has mistakes in its parts, but correct checksums."""
    fresh("fuzzed/texts", f"{ASKED}/texts")
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(f"{ASKED}/t.index") as whole,
        zipfile.ZipFile(packed, "w") as forged,
    ):
        names = whole.namelist()
        changed = set(draw.choices(names, k=draw.randint(1, 2)))
        for name in names:
            content = whole.read(name)
            if name in changed:
                content = _mistaken_part(draw, content, nonsense)
            if content is not None:
                forged.writestr(name, content)
    write("fuzzed/t.index", packed.getvalue())
    indexed("fuzzed")


def _mistaken_part(draw, content, nonsense):
    if draw.random() < 0.1:
        return None
    try:
        lines = content.decode().splitlines()
        at = draw.randrange(len(lines))
        changed = mistaken(draw, lines[at], nonsense)
        lines = [line.encode() for line in lines]
        return b"\n".join([*lines[:at], changed, *lines[at + 1 :]])
    except ValueError:  # Bits are flipped, because the part is not text.
        content = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        return bytes(content)


FUZZED = (fuzz_study, fuzz_tokenizer, fuzz_cluster, fuzz_index)


def descriptions(draw, nonsense, fuzz_task):
    """Draw a kind of file, and open a file of this kind with mistakes."""
    fresh("fuzzed")
    work = draw.choice((*FUZZED, None))
    if work:
        return work(draw, nonsense)
    return fuzz_task(draw, functools.partial(mistaken, draw))

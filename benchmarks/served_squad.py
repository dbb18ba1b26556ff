# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""SQuAD through an exported model's `serve_text`, beside our own evaluation.

Questions and contexts go as strings to the SavedModel, in a process that
imports tensorflow and tensorflow_text only. The same questions are answered
by the Python code that evaluates fine-tuned models. Both are scored, and every
answer that differs is listed with its cause:

  another place   same letters, but case, accents or space differ: evaluation
                  takes the first place in the answer's words where its text
                  fits, serving the place that the model meant
  no span         no allowed answer: "empty" in evaluation, "" when served
  tie             the two answers' scores differ by less than 1e-4
  threshold       null odds within 1e-4 of the threshold (SQuAD 2.0)
  unexplained     anything else: a bug

  python benchmarks/served_squad.py --model DATA/models/M/.../squad_model_1 \
      --dev DATA/finetuning_data/squad/dev.json --limit 500 --output out.json
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unicodedata

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

TIE = 1e-4
# What answers the questions elsewhere: nothing of ours is imported.
CLIENT = """
import json, sys, time
import tensorflow as tf
import tensorflow_text
folder, asked, answered, batch_size = sys.argv[1:]
serve = tf.saved_model.load(folder).signatures["serve_text"]
with open(asked, encoding="utf-8") as file:
    questions = json.load(file)
assert not any(
    name.startswith(("electra_tf", "configure", "tf_keras"))
    for name in sys.modules
)
size, answers, start = int(batch_size), [], time.time()
for i in range(0, len(questions), size):
    columns = zip(*questions[i : i + size])
    question, context = (tf.constant(list(column)) for column in columns)
    found = serve(question=question, context=context)
    found = {name: value.numpy() for name, value in found.items()}
    for row in range(len(question)):
        answers.append({
            "answer": found["answer"][row].decode(),
            "texts": [t.decode() for t in found["answers"][row]],
            "scores": found["scores"][row].tolist(),
            "start": int(found["start"][row]),
            "end": int(found["end"][row]),
            "null_odds": float(found["null_odds"][row]),
            "n_windows": int(found["n_windows"][row]),
        })
with open(answered, "w", encoding="utf-8") as file:
    json.dump({"seconds": time.time() - start, "answers": answers}, file)
"""


def read_questions(task, path, limit):
    """Returns the first examples of a SQuAD file, and their contexts."""
    from electra_tf import files
    from electra_tf.finetuning.question_answering import examples

    with files.open_file(path, "rb") as file:
        document = json.loads(file.read().decode("utf-8-sig"))
    contexts = [
        paragraph["context"]
        for article in document["data"]
        for paragraph in article["paragraphs"]
        for _ in paragraph["qas"]
    ]
    found = []
    for raw in examples.read_squad(path, task.row_report):
        found.append(
            examples.make_example(
                raw.fields,
                raw.passage,
                task_name=task.name,
                eid=len(found),
                is_training=False,
                version=task.version,
            )
        )
    if len(found) != len(contexts):
        raise SystemExit(f"{path}: {len(contexts) - len(found)} bad rows")
    return found[:limit], contexts[:limit]


def evaluate(loaded, index, questions, batch_size):
    """Answers the questions in Python; returns the scorer."""
    from electra_tf.prediction.batch_runner import head_function, run_in_batches

    task = loaded.tasks[index]
    config = task.config
    names = ["answerable_logit", "start_logits", "end_logits"]
    if config.joint_prediction:
        names += ["start_top_log_probs", "start_top_index"]
        names += ["end_top_log_probs", "end_top_index"]
    function = head_function(loaded.model, index, task, (), names)
    rows = [row for q in questions for row in task.featurize(q, False)]
    lengths = [sum(row["input_mask"]) for row in rows]
    if config.joint_prediction:  # A beam needs as many positions.
        lengths = [max(config.beam_size, length) for length in lengths]
    outputs = run_in_batches(
        function, rows, lengths, batch_size, config.max_seq_length
    )
    scorer = task.scorer_of(questions)
    for row, output in zip(rows, outputs, strict=True):
        eid = row[f"{task.name}_eid"]
        scorer.update({**output, "eid": eid, "loss": 0.0})
    scorer.answer()
    return scorer


def serve(folder, questions, contexts, batch_size):
    """Asks the SavedModel in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        paths = [
            os.path.join(place, name)
            for name in ("asked.json", "answered.json")
        ]
        with open(paths[0], "w", encoding="utf-8") as file:
            texts = [question.question_text for question in questions]
            json.dump(list(zip(texts, contexts, strict=True)), file)
        client = os.path.join(place, "client.py")
        with open(client, "w", encoding="utf-8") as file:
            file.write(CLIENT)
        command = [sys.executable, "-P", client, folder, *paths]
        subprocess.run([*command, str(batch_size)], check=True, cwd=place)
        with open(paths[1], encoding="utf-8") as file:
            return json.load(file)


def plain(text):
    """Letters and marks of a text, without case, accents and space."""
    text = unicodedata.normalize("NFD", text.lower())
    return "".join(
        c for c in text if not c.isspace() and unicodedata.category(c) != "Mn"
    )


def cause(served, best, final, odds, threshold):
    """Says why a served answer is not the evaluation's."""
    if best[0].words is None:
        return "no span"
    if bool(served["answer"]) != bool(final):
        return (
            "threshold"
            if odds is not None and abs(odds - threshold) < TIE
            else "unexplained"
        )
    first = served["texts"][0]
    if plain(first) == plain(best[0].text):
        return "another place"
    scores = {answer.text: float(answer.score) for answer in best}
    if abs(scores.get(first, -1e9) - float(best[0].score)) < TIE:
        return "tie"
    return "unexplained"


def score(task, questions, predictions, odds):
    """Returns exact match and F1, from 0 to 100."""
    from electra_tf.metrics import answer_scores

    asked = [answer_scores.Question(q.key, q.answers) for q in questions]
    if task.v2:
        threshold = task.config.qa_na_threshold
        scores = answer_scores.evaluate_squad2(
            asked, predictions, odds, threshold
        )
        return scores["exact"], scores["f1"]
    evaluate = (
        answer_scores.evaluate_squad1
        if task.version == "squad1"
        else answer_scores.evaluate_mrqa
    )
    scores = evaluate(asked, predictions)
    return scores["exact_match"], scores["f1"]


def compare(task, scorer, questions, contexts, answers):
    """Returns the differing answers, each with its cause."""
    differing = []
    final = scorer.final_answers()
    for question, context, served in zip(
        questions, contexts, answers, strict=True
    ):
        key = question.key
        best, odds = scorer.best[key], scorer.null_odds.get(key)
        cut = context.encode()[max(0, served["start"]) : served["end"]]
        words = type(question.passage)(cut.decode()).words
        in_place = served["start"] < 0 or " ".join(words) == served["answer"]
        same = served["texts"][0] == scorer.predictions[key]
        if same and served["answer"] == final[key] and in_place:
            continue
        threshold = task.config.qa_na_threshold
        why = cause(served, best, final[key], odds, threshold)
        differing.append(
            {
                "id": key,
                "cause": why if in_place else "unexplained",
                "evaluated": scorer.predictions[key],
                "served": served["texts"][0],
                "evaluated_final": final[key],
                "served_final": served["answer"],
                "evaluated_score": float(best[0].score),
                "served_score": served["scores"][0],
                "expected": list(question.answers),
            }
        )
    return differing


def compare_lists(questions, scorer, answers):
    """Counts the best answers listed, and those only one side lists."""
    counts = {"listed": 0, "another place": 0, "tie": 0, "unexplained": 0}
    for question, served in zip(questions, answers, strict=True):
        best = [a for a in scorer.best[question.key] if a.words is not None]
        known = {answer.text: float(answer.score) for answer in best}
        letters = {plain(text) for text in known}
        found = [text for text in served["texts"] if text]
        counts["listed"] += len(found)
        for text, value in zip(found, served["scores"], strict=False):
            if text in known and abs(known[text] - value) < TIE:
                continue
            if plain(text) in letters:
                counts["another place"] += 1
            elif abs(value - float(best[-1].score)) < TIE:
                counts["tie"] += 1
            else:
                counts["unexplained"] += 1
    return counts


def run(arguments):
    """Compares; returns what is written."""
    from electra_tf.export.saved_model import export, make_task_module
    from electra_tf.prediction.loading import load_finetuned

    settings = {}
    if arguments.threshold is not None:
        settings["qa_na_threshold"] = arguments.threshold
    loaded = load_finetuned(arguments.model, **settings)
    index = loaded.task_index(arguments.task)
    task = loaded.tasks[index]
    questions, contexts = read_questions(task, arguments.dev, arguments.limit)
    start = time.time()
    scorer = evaluate(loaded, index, questions, arguments.batch_size)
    seconds = time.time() - start
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.saved_model
        if folder is None:
            module = make_task_module(loaded, task.name)
            folder = export(module, os.path.join(place, "served"))
        folder = os.path.abspath(folder)
        served = serve(folder, questions, contexts, arguments.batch_size)
    keys = [question.key for question in questions]
    answers = dict(zip(keys, served["answers"], strict=True))
    differing = compare(task, scorer, questions, contexts, served["answers"])
    causes = [one["cause"] for one in differing]
    worst = [
        abs(answers[key]["scores"][0] - float(scorer.best[key][0].score))
        for key in keys
    ]
    evaluated = score(task, questions, scorer.predictions, scorer.null_odds)
    found = score(
        task,
        questions,
        {key: answer["texts"][0] for key, answer in answers.items()},
        {key: answer["null_odds"] for key, answer in answers.items()},
    )
    return {
        "task": task.name,
        "questions": len(questions),
        "windows": sum(answer["n_windows"] for answer in answers.values()),
        "evaluated": dict(zip(("exact_match", "f1"), evaluated, strict=True)),
        "served": dict(zip(("exact_match", "f1"), found, strict=True)),
        "evaluated_seconds": seconds,
        "served_seconds": served["seconds"],
        "largest_score_difference": max(worst),
        "differing": len(differing),
        "n_best": compare_lists(questions, scorer, served["answers"]),
        "causes": {name: causes.count(name) for name in sorted(set(causes))},
        "answers": differing,
    }


def main():
    """Runs the comparison; fails beyond the bounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", required=True, help="folder of a trial")
    parser.add_argument("--dev", required=True, help="a SQuAD file")
    parser.add_argument("--task", help="where the model learned several")
    parser.add_argument("--limit", type=int, help="questions to ask")
    parser.add_argument(
        "--threshold", type=float, help="null odds, not the model's"
    )
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--saved_model", help="export that is there already")
    parser.add_argument("--output", help="JSON file with all that differs")
    arguments = parser.parse_args()
    found = run(arguments)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1, ensure_ascii=False)
    for one in found.pop("answers"):
        print(
            f"{one['cause']}: {one['evaluated']!r} evaluated,"
            f" {one['served']!r} served (final: {one['evaluated_final']!r},"
            f" {one['served_final']!r}) [{one['id']}]"
        )
    print(json.dumps(found, indent=1))
    apart = max(
        abs(found["evaluated"][name] - found["served"][name])
        for name in ("exact_match", "f1")
    )
    if apart > 0.1 or "unexplained" in found["causes"]:
        sys.exit("served answers are not those of evaluation")


if __name__ == "__main__":
    main()

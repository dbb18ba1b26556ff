# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers and metrics equal those recorded from the original."""

import types

import numpy as np
import pytest
from official.nlp.tools import squad_evaluate_v2_0

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import registry
from electra_tf.metrics import answer_selection
from electra_tf.metrics import question_answering as qa
from electra_tf.text.basic_tokenizer import BasicTokenizer
from tests.conftest import read_json, refused

CASES = """
squad_joint_answerable squad_independent_answerable squad_independent_null_score
squad_joint_short_answers squadv1_joint triviaqa_independent newsqa_joint
""".split()


@pytest.fixture(scope="session")
def recorded(golden_dir):
    return read_json(golden_dir / "finetune_features" / "qa_metrics.json")


@pytest.fixture
def scored(recorded, golden_dir, tmp_path):
    """Return a factory of scorers with the outputs of a recorded case."""

    def make(case, **hparams):
        info = recorded["qa"][case]
        directory = golden_dir / "finetune_features"
        (tmp_path / "finetuning_data").symlink_to(directory / "raw")
        settings = {"vocab_file": str(golden_dir / "vocab.txt")}
        settings |= info["hparams"] | hparams
        config = FinetuningConfig.create("m", str(tmp_path), **settings)
        (task,) = registry.get_tasks(config)
        scorer = task.get_scorer(info["split"])
        raw = np.load(directory / info["raw_results"])
        rows = {name: raw[name] for name in raw.files}
        for row in np.random.default_rng(0).permutation(len(rows["eid"])):
            scorer.update({name: rows[name][row] for name in rows})
        return info, config, scorer

    return make


@pytest.mark.parametrize("case", CASES)
def test_answers_and_metrics_equal_the_originals(case, scored, recorded):
    assert set(recorded["qa"]) == set(CASES)
    info, _, scorer = scored(case)
    results, expected = dict(scorer.get_results()), dict(info["get_results"])
    assert list(results) == list(expected)
    assert results == pytest.approx(expected, rel=1e-15)
    assert {*results} <= {*scorer.metric_names}
    assert scorer.single_prediction() is None
    assert scorer.results_str() == info["results_str"]
    assert scorer.get_loss() == pytest.approx(info["loss"], rel=1e-14)
    assert scorer.predictions == info["predictions"]
    files = scorer.files()
    assert files["preds"] == info["predictions"]
    if info["null_odds"] is not None:
        assert scorer.null_odds == info["null_odds"]
        assert files["null_odds"] == info["null_odds"]
        written = files["eval"]
        assert list(written) == list(info["eval_json"])
        assert written == pytest.approx(info["eval_json"], rel=1e-15)
        expected = info["test_output_after_qa_na_threshold_-2.75"]
        assert scorer.final_answers() == expected


@pytest.mark.parametrize("case", ["squad_joint_answerable", "newsqa_joint"])
def test_the_best_answers_have_probabilities(case, scored):
    info, config, scorer = scored(case)
    best = scorer.files()["nbest"]
    texts = {key: [a["text"] for a in best[key]] for key in best}
    first = {key: texts[key][0] for key in texts}
    assert first == info["predictions"]
    counts = [len(of_question) for of_question in texts.values()]
    assert max(counts) <= config.n_best_size
    assert counts == [len({*of_question}) for of_question in texts.values()]
    sums = [sum(a["probability"] for a in best[key]) for key in best]
    assert sums == pytest.approx([1.0] * len(best))


def test_the_best_answers_are_in_the_order_of_their_scores(scored):
    _, _, scorer = scored("squad_joint_answerable")
    falls = []
    for answers in scorer.files()["nbest"].values():
        scores = [a["start_logit"] + a["end_logit"] for a in answers]
        falls.append(scores == sorted(scores, reverse=True))
    assert all(falls)


def test_projection_to_the_passage_equals_the_originals(recorded):
    cases = recorded["final_text_cases"]
    assert len(cases) == 40
    texts = []
    for case in cases:
        tokenizer = BasicTokenizer(case["do_lower_case"])
        pair = case["pred_text"], case["orig_text"]
        texts.append(answer_selection.project_to_passage(*pair, tokenizer))
    assert texts == [case["final_text"] for case in cases]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda gold, text: qa.exact_match(text, gold), "exact_v1"),
        (lambda gold, text: qa.f1_score(text, gold), "f1_v1"),
        # tf-models-official computes the original's scores.
        (squad_evaluate_v2_0._compute_exact, "exact_v2"),
        (squad_evaluate_v2_0._compute_f1, "f1_v2"),
    ],
)
def test_string_scores_equal_the_originals(function, name, recorded):
    pairs = recorded["official_eval_string_pairs"]
    assert len(pairs) == 289
    scores = [function(pair["gold"], pair["pred"]) for pair in pairs]
    assert scores == [pair[name] for pair in pairs]


WITHOUT_ANSWER = types.SimpleNamespace(key="q", answers=())


@pytest.mark.parametrize("evaluate", [qa.evaluate_mrqa, qa.evaluate_squad1])
def test_the_best_of_several_expected_answers_counts(evaluate):
    question = types.SimpleNamespace(key="q", answers=("a red car", "bus"))
    scores = evaluate([question], {"q": "the car"})
    assert scores["exact_match"] == 0.0
    assert scores["f1"] == pytest.approx(100 * 2 / 3)


@pytest.mark.parametrize(
    ("evaluate", "arguments"),
    [
        (qa.evaluate_mrqa, [{"q": "car"}]),
        (qa.evaluate_squad1, [{"q": "car"}]),
        (qa.evaluate_squad2, [{}, {}, 0.0]),
    ],
)
def test_questions_without_answers_cannot_be_scored(evaluate, arguments):
    refused(
        "cannot compute metrics: none of the",
        evaluate,
        [WITHOUT_ANSWER],
        *arguments,
    )


WORDS = "Steve Smith's"
WINDOW = answer_selection.Window(
    eid=0,
    tokens=["[CLS]", "who", "[SEP]", "steve", "smith", "'", "s", "[SEP]"],
    words=np.array([-1, -1, -1, 0, 1, 1, 1, -1]),
    max_context=np.array([0, 0, 0, 1, 1, 1, 0, 0], bool),
)


def logits(**best):
    values = np.full(16, -5.0, np.float32)
    for name, value in best.items():
        values[int(name[1:])] = value
    return values


RULE = answer_selection.AnswerRule(
    n_best_size=20,
    max_answer_length=30,
    joint_prediction=False,
    answerable_classifier=True,
    qa_na_threshold=-2.75,
)


def answers_to(rule, start, end):
    outputs = [{"start_logits": start, "end_logits": end}]
    tokenizer = BasicTokenizer()
    return answer_selection.find_answers(
        rule, [WINDOW], outputs, WORDS.split(), tokenizer
    )


SPANS = {
    "Steve",
    "Steve Smith",
    "Steve Smith'",
    "Steve Smith's",
    "Smith",
    "Smith'",
    "Smith's",
    "'",
    "'s",
}


def test_only_spans_of_the_passage_are_answers():
    # The highest logits are outside of the passage or of the tokens, have less
    # context, or end before they start.
    start = logits(_0=9, _1=8, _15=7, _6=6, _4=3, _3=2)
    end = logits(_0=9, _7=8, _15=7, _3=6, _4=5)
    answers = answers_to(RULE, start, end)
    assert [a.text for a in answers[:2]] == ["Smith", "Steve"]
    assert [a.score for a in answers[:2]] == [8.0, 8.0]
    assert {a.text for a in answers} <= SPANS


def test_without_a_span_the_answer_is_the_word_empty():
    outside = logits(_0=9)
    rule = RULE._replace(n_best_size=1)
    (answer,) = answers_to(rule, outside, outside)
    assert (answer.text, answer.score) == ("empty", 0.0)


def make_scorer(windows, **answers):
    examples = [
        types.SimpleNamespace(key=key, answers=texts, doc_tokens=[])
        for key, texts in answers.items()
    ]
    return qa.SpanScorer(
        RULE._replace(joint_prediction=True),
        BasicTokenizer(),
        "squad",
        "squad2",
        examples,
        lambda _: windows,
    )


def test_questions_without_windows_have_an_empty_answer():
    scorer = make_scorer([], q=(), r=("Steve",))
    scorer.answer()
    assert scorer.final_answers() == {"q": "", "r": ""}
    assert scorer.null_odds == {"q": 1e6, "r": 1e6}


def test_windows_of_other_questions_are_refused():
    with pytest.raises(
        ValueError, match="outputs for window .* are missing. Predict"
    ):
        make_scorer([WINDOW], q=()).answer()


def test_only_a_model_that_never_answers_is_called_collapsed(scored):
    _, _, scorer = scored("squad_joint_answerable", qa_na_threshold=-1e9)
    assert scorer.single_prediction() == ""


def test_no_answer_is_right_for_unanswerable_questions():
    scorer = make_scorer([], q=(), r=("Steve",), s=("Ann",), t=("Bob",))
    majority = scorer.baselines()["majority"]
    assert majority["exact"] == majority["f1"] == 25.0
    assert majority["HasAns_exact"] == 0.0

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers and figures equal those recorded from the original."""

import types

import numpy as np
import pytest
from official.nlp.tools import squad_evaluate_v2_0

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import registry
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
    """Feeds a recorded case to a scorer, its windows in any order."""

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
def test_answers_and_figures_equal_the_originals(case, scored, recorded):
    assert set(recorded["qa"]) == set(CASES)
    info, _, scorer = scored(case)
    pairs = zip(scorer.get_results(), info["get_results"], strict=True)
    for (name, value), (expected_name, expected) in pairs:
        assert name == expected_name
        assert value == pytest.approx(expected, rel=1e-15), name
        assert name in scorer.metric_names
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
        wanted = info["test_output_after_qa_na_threshold_-2.75"]
        assert scorer.final_answers() == wanted


@pytest.mark.parametrize("case", ["squad_joint_answerable", "newsqa_joint"])
def test_the_best_answers_have_probabilities(case, scored):
    info, config, scorer = scored(case)
    best = scorer.files()["nbest"]
    assert set(best) == set(info["predictions"])
    for key, answers in best.items():
        assert answers[0]["text"] == info["predictions"][key]
        assert 1 <= len(answers) <= config.n_best_size
        assert sum(a["probability"] for a in answers) == pytest.approx(1)
        assert len({a["text"] for a in answers}) == len(answers)
        scores = [a["start_logit"] + a["end_logit"] for a in answers]
        assert scores == sorted(scores, reverse=True)


def test_projection_to_the_passage_equals_the_originals(recorded):
    cases = recorded["final_text_cases"]
    assert len(cases) == 40
    for case in cases:
        tokenizer = BasicTokenizer(case["do_lower_case"])
        texts = case["pred_text"], case["orig_text"]
        found = qa.project_to_passage(*texts, tokenizer)
        assert found == case["final_text"], case


def test_string_scores_equal_the_originals(recorded):
    pairs = recorded["official_eval_string_pairs"]
    assert len(pairs) == 289
    for pair in pairs:
        gold, found = pair["gold"], pair["pred"]
        assert qa.exact_match(found, gold) == pair["exact_v1"]
        assert qa.f1_score(found, gold) == pair["f1_v1"]
        # What tf-models-official computes is what the original computes.
        script = squad_evaluate_v2_0
        assert script._compute_exact(gold, found) == pair["exact_v2"]
        assert script._compute_f1(gold, found) == pair["f1_v2"]


def test_the_best_of_several_expected_answers_counts():
    question = types.SimpleNamespace(key="q", answers=("a red car", "bus"))
    without = types.SimpleNamespace(key="q", answers=())
    for evaluate in (qa.evaluate_mrqa, qa.evaluate_squad1):
        found = evaluate([question], {"q": "the car"})
        assert found["exact_match"] == 0.0
        assert found["f1"] == pytest.approx(100 * 2 / 3)
        refused("nothing to score", evaluate, [without], {"q": "car"})
    refused("nothing to score", qa.evaluate_squad2, [without], {}, {}, 0.0)


WORDS = "Steve Smith's"
WINDOW = qa.Window(
    eid=0,
    tokens=["[CLS]", "who", "[SEP]", "steve", "smith", "'", "s", "[SEP]"],
    words=np.array([-1, -1, -1, 0, 1, 1, 1, -1]),
    max_context=np.array([0, 0, 0, 1, 1, 1, 0, 0], bool),
)


def logits(**best):
    values = np.full(16, -5.0, np.float32)
    for place, value in best.items():
        values[int(place[1:])] = value
    return values


def answers_to(config, start, end):
    outputs = [{"start_logits": start, "end_logits": end}]
    words, tokenizer = WORDS.split(), BasicTokenizer()
    return qa.find_answers(config, [WINDOW], outputs, words, tokenizer)


def make_config(**hparams):
    settings = {"max_seq_length": 128, "joint_prediction": False, **hparams}
    return FinetuningConfig.create("m", "d", task_names=["squad"], **settings)


def test_only_spans_of_the_passage_are_answers_or_a_word():
    # Outside of the passage, of the tokens, less context, end before start.
    start = logits(_0=9, _1=8, _15=7, _6=6, _4=3, _3=2)
    end = logits(_0=9, _7=8, _15=7, _3=6, _4=5)
    found = answers_to(make_config(), start, end)
    assert [a.text for a in found[:2]] == ["Smith", "Steve"]
    assert [a.score for a in found[:2]] == [8.0, 8.0]
    assert {a.text for a in found} <= {
        *("Steve", "Steve Smith", "Smith", "Smith's", "Steve Smith's"),
        *("Smith'", "'", "'s", "Steve Smith'"),
    }
    found = answers_to(make_config(n_best_size=1), logits(_0=9), logits(_0=9))
    assert [a.text for a in found] == ["empty"] and found[0].score == 0.0


def make_scorer(windows, **answers):
    examples = [
        types.SimpleNamespace(key=key, answers=texts, doc_tokens=[])
        for key, texts in answers.items()
    ]
    config = make_config(joint_prediction=True)
    return qa.SpanScorer(config, "squad", "squad2", examples, lambda _: windows)


def test_no_windows_are_no_answer_and_those_of_others_are_noticed():
    scorer = make_scorer([], q=(), r=("Steve",))
    scorer.answer()
    assert scorer.final_answers() == {"q": "", "r": ""}
    assert scorer.null_odds == {"q": 1e6, "r": 1e6}
    with pytest.raises(ValueError, match="not those of the split"):
        make_scorer([WINDOW], q=()).answer()


def test_only_a_model_that_never_answers_is_called_collapsed(scored):
    _, _, scorer = scored("squad_joint_answerable", qa_na_threshold=-1e9)
    assert scorer.single_prediction() == ""


def test_answering_nothing_is_right_where_there_is_no_answer():
    scorer = make_scorer([], q=(), r=("Steve",), s=("Ann",), t=("Bob",))
    majority = scorer.baselines()["majority"]
    assert majority["exact"] == majority["f1"] == 25.0
    assert majority["HasAns_exact"] == 0.0

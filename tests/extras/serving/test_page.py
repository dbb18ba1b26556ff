# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: a person types, and sees the answer."""

import json
import shutil
import types

import pytest

from electra_tf.export import heads
from electra_tf.export.encoder import EncoderModule
from electra_tf.export.saved_model import export, make_task_module
from electra_tf.extras.ask.asker import AskedCorpus
from electra_tf.extras.serving.served_model import open_model
from electra_tf.prediction.loading import load_finetuned, load_pretrained


@pytest.fixture(scope="module")
def browser():
    """Return headless Chromium; skip if it is not installed."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no chromium and chromedriver to show the page in")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=900,1000",
        # Other machines must not be reached.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture
def visit(browser, start):
    """Return a function that opens the page of a model."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    class Page:
        def __init__(self, model):
            self.running = start(model)
            browser.get(self.running.address + "/")
            self.wait(lambda: self.find("#ask").is_enabled())

        def wait(self, condition):
            WebDriverWait(browser, 60).until(lambda _: condition())

        def find(self, selector):
            return browser.find_element(By.CSS_SELECTOR, selector)

        def all(self, selector):
            return browser.find_elements(By.CSS_SELECTOR, selector)

        def texts(self, selector):
            return [element.text for element in self.all(selector)]

        def ask(self, **fields):
            for name, text in fields.items():
                field = self.find(f"#field-{name}")
                field.clear()
                field.send_keys(text)
            self.find("#ask").click()
            self.wait(lambda: self.find("#ask").is_enabled())

    yield Page
    complaints = [
        entry["message"]
        for entry in browser.get_log("browser")
        # The page itself shows errors of status 4xx, which are logged, too.
        if entry["level"] == "SEVERE" and "status of 4" not in entry["message"]
    ]
    assert not complaints


@pytest.fixture(scope="module")
def exported(finetuned_folder, pretrained_folder, tmp_path_factory, long_sizes):
    """Return a function that exports a small model, and opens the export."""
    sizes = long_sizes | {"num_hidden_layers": 1}

    def make(what, module_class=None, **hparams):
        hparams["model_hparam_overrides"] = sizes
        if module_class is None:
            loaded = load_finetuned(finetuned_folder(what, **hparams))
            module = make_task_module(loaded)
        else:
            loaded = load_pretrained(pretrained_folder(**hparams))
            module = module_class(loaded)
        folder = str(tmp_path_factory.mktemp("exported") / what)
        export(module, folder)
        return open_model(folder)

    return make


def test_classes_are_bars(visit, toy_model):
    page = visit(toy_model)
    assert page.find("h1").text == "toy"
    page.ask(text="rather a long text <b>&amp;</b>")
    assert page.find(".big").text == "long"
    assert page.texts(".bars th") == ["long", "short"]
    assert page.texts(".bars .number") == ["100.0 %", "0.0 %"]
    page.ask(text="tiny")
    assert page.find(".big").text == "short"


def test_labels_and_numbers_are_shown(visit, exported):
    page = visit(exported("topics"))
    page.ask(text="the king of the north")
    assert sorted(page.texts(".bars th")) == ["art", "law", "war"]
    page = visit(exported("grade"))
    page.ask(text="the king of the north")
    float(page.find(".big").text)
    assert "from 1 to 7" in page.find("#answer .note").text


def test_tags_are_coloured_in_the_text(visit, exported):
    page = visit(exported("names"))

    def notes():
        return "\n".join(page.texts("#answer .note"))

    text = "Zoë met the king of the north (in York), and she was for it."
    page.ask(text=text)
    boxes = page.all(".span")
    assert all(box.text.endswith(("PER", "LOC")) for box in boxes)
    colors = [box.value_of_css_property("background-color") for box in boxes]
    assert all("rgb" in color for color in colors)
    plain = page.find(".running").text
    for tag in ("PER", "LOC"):
        plain = plain.replace(tag, "")
    assert "".join(plain.split()) == "".join(text.split())
    page.ask(text="see /etc/fstab")
    page.wait(lambda: "see · / · etc · / · fstab: punctuation" in notes())
    page.ask(text="see the king")
    page.wait(lambda: "Read as" not in notes())


def test_the_answer_is_marked_in_its_passage(visit, exported):
    page = visit(exported("facts"))
    context = "Ünïcödé: the king of the north was for that. And so is it."
    page.ask(question="who was for that?", context=context)
    assert page.find("mark").text == page.find(".big").text
    assert page.find(".running").text == context


def test_passages_stand_under_their_sources_with_the_answer_marked(visit):
    best = {
        "answer": "Zoë",
        "file": "a.txt",
        "line": 3,
        "id": "",
        "score": 1.0,
        "passage": "Ünï: Zoë <b> did.",
        "start": 5,
        "end": 8,
    }
    other = {**best, "id": "T/1", "line": None, "start": None, "end": None}
    answers = [{**best, "others": [other]}]
    asker = types.SimpleNamespace(count=2, ask=lambda *_: answers)
    page = visit(AskedCorpus(asker, 0.5))
    page.ask(question="who did?")
    assert page.find(".big").text == "Zoë"
    notes = page.texts("#answer .note")
    assert notes == ["a.txt:3 score 1.00", "a.txt T/1 score 1.00"]
    assert page.texts("mark") == ["Zoë"]
    assert page.texts(".running") == ["Ünï: Zoë <b> did."] * 2
    page.ask(question="??")
    assert (
        "expected a question with at least one word" in page.find(".error").text
    )


def test_chosen_sentences_are_marked_in_the_text(visit, exported):
    page = visit(exported("news"))
    page.find("#example").click()
    text = page.find("#field-text").get_attribute("value")
    page.ask()
    assert page.find(".running").text == text and len(page.texts("mark")) == 3
    assert len(page.texts(".running span")) == 2
    assert all(sentence in text for sentence in page.texts("mark"))
    text = "Ünïcödé: the king?\nIt was so."
    page.ask(text=text)
    assert page.texts("mark") == text.split("\n")
    assert page.find("mark").get_attribute("title").endswith(" %")


def test_masks_get_candidates(visit, exported):
    page = visit(exported("filled", heads.FillMaskModule))
    page.ask(text="the [MASK] of the [MASK] was")
    assert page.texts("h2") == ["[MASK] 1", "[MASK] 2"]
    assert len(page.all("mark")) == 2 and len(page.all(".bars tr")) == 20
    page.ask(text="no mask")
    assert "Write [MASK]" in page.find(".error").text


def test_tokens_are_coloured_by_the_probability_of_a_replacement(
    visit, exported
):
    page = visit(exported("replaced", heads.ReplacedTokensModule))
    page.ask(text="the king of that")
    tokens = page.texts(".token")
    assert tokens[0] == "[CLS]" and tokens[1] == "the"
    shades = {
        token.value_of_css_property("background-color")
        for token in page.all(".token:not(.special)")
    }
    assert len(shades) > 1


def test_scores_are_drawn_and_vectors_shown(visit, exported):
    electric = {"electra_objective": False, "electric_objective": True}
    page = visit(exported("scored", heads.ElectricModule, **electric))
    page.ask(text="the king of that")
    assert page.find(".big").text.endswith(" nats")
    page = visit(exported("vectors", EncoderModule))
    page.ask(text="the king")
    assert len(json.loads(page.find("#answer pre").text)["pooled_output"]) == 16

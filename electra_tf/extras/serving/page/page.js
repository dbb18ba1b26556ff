// Copyright 2026 The electra_tf Authors.
// SPDX-License-Identifier: Apache-2.0
// Asks the model what the person typed, and draws the answer by its kind.
// Everything from outside is put in as text, never as HTML.
"use strict";

// Title, rows and example of each input; a question before its context.
const FIELDS = {
  text: ["Text", 4, "Ada Lovelace met Charles Babbage in London."],
  text_pair: ["Second text", 3, "They had never met before."],
  question: ["Question", 2, "Who wrote the first program?"],
  context: [
    "Text that has the answer",
    8,
    "Charles Babbage designed the Analytical Engine. In 1843 Ada Lovelace" +
    " published notes on it, and with them what is called the first program.",
  ],
};
// Of kinds that want another text than the first.
const TEXTS = {
  fill_mask: "The cat sat on the [MASK] and looked at the [MASK].",
  summarization:
    "Lady Byron kept her daughter from poetry. So Ada Lovelace learned" +
    " mathematics. In 1833 she met Mr. Babbage, who showed her a machine. Ten" +
    " years later she published a program for its successor. It was not built.",
};
const COLOURS = [
  "#a8d1ff", "#ffcf9e", "#b5e8b0", "#f5b5c8", "#d3c0f5", "#f0e39a",
  "#a5e3e0", "#e0c3a8",
];

let model = null;
const byId = (id) => document.getElementById(id);
const percent = (share) => (100 * share).toFixed(1) + " %";
const note = (text) => element("p", "note", text);

function element(name, classes, text) {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

// ---- Parts of answers ----

function bars(names, shares, isChosen) {
  const table = element("table", "bars");
  const order = names.map((_, i) => i).sort((a, b) => shares[b] - shares[a]);
  for (const i of order) {
    const row = table.insertRow();
    row.append(element("th", isChosen(i) ? "chosen" : "", names[i]));
    const track = element("td", "track");
    const fill = element("div", "fill");
    fill.style.width = percent(shares[i]).replace(" ", "");
    track.append(fill);
    row.append(track, element("td", "number", percent(shares[i])));
  }
  return table;
}

// Offsets count bytes of UTF-8; the browser's strings do not.
function runningText(text, spans, draw) {
  const bytes = new TextEncoder().encode(text);
  const slice = (start, end) =>
    new TextDecoder().decode(bytes.subarray(start, end));
  const paragraph = element("p", "running");
  let done = 0;
  for (const span of spans) {
    if (span.start < done) continue;
    paragraph.append(slice(done, span.start));
    paragraph.append(draw(span, slice(span.start, span.end)));
    done = span.end;
  }
  paragraph.append(slice(done));
  return paragraph;
}

// Words with tags to spans: B-, I-, E- and S- where the task has spans, else
// each word for itself.
function tagSpans(answer) {
  const spans = [];
  let open = null;
  for (let i = 0; i < answer.n_words; i++) {
    // Spans may have no type: B, I, E, S alone.
    const [, place, type = ""] = /^([A-Z])(?:-(.*))?$/s.exec(answer.tags[i]) ??
      [null, "I", answer.tags[i]];
    const word = { start: answer.starts[i], end: answer.ends[i], type };
    if (model.config.tags === "words") {
      spans.push({ ...word, type: answer.tags[i] });
    } else if (answer.tags[i] === "O") {
      open = null;
    } else if (open && open.type === type && !"BS".includes(place)) {
      open.end = word.end;
    } else {
      open = word;
      spans.push(open);
    }
  }
  return spans;
}

// The redder a token, the nearer its strength is to 1.
function tokenRow(tokens, strengths, title) {
  const row = element("p", "running");
  tokens.forEach((token, i) => {
    if (!token) return;
    const special = /^\[(CLS|SEP|PAD)\]$/.test(token);
    const made = element("span", special ? "token special" : "token", token);
    if (!special) {
      made.style.backgroundColor = `hsla(4, 90%, 55%, ${strengths[i]})`;
    }
    made.title = title(i);
    row.append(made);
  });
  return row;
}

// ---- One function a kind: (answer, what was asked) -> elements ----

const DRAW = {
  classification: (answer) => [
    element("p", "big", answer.label),
    bars(
      model.labels,
      answer.probabilities,
      (i) => model.labels[i] === answer.label,
    ),
  ],

  multilabel(answer) {
    const chosen = model.labels.filter((_, i) => answer.chosen[i]);
    return [
      element("p", "big", chosen.join(", ") || "(no label)"),
      bars(model.labels, answer.probabilities, (i) => answer.chosen[i]),
    ];
  },

  regression(answer) {
    const [low, high] = model.config.range;
    return [
      element("p", "big", answer.value.toFixed(3)),
      note(`from ${low} to ${high} in the training data`),
    ];
  },

  question_answering(answer, asked) {
    const found = answer.start >= 0;
    const spans = found ? [{ start: answer.start, end: answer.end }] : [];
    const listed = answer.answers.filter((_, i) => answer.starts[i] >= 0);
    return [
      element("p", "big", found ? answer.answer : "(no answer)"),
      runningText(asked.context, spans, (_, text) => element("mark", "", text)),
      bars(listed.slice(0, 5), answer.probabilities, (i) => i === 0),
      note(
        `odds of no answer ${answer.null_odds.toFixed(2)};` +
        ` read in ${answer.n_windows} window(s)`,
      ),
    ];
  },

  summarization(answer, asked) {
    const spans = answer.starts.slice(0, answer.n_sentences).map(
      (start, i) => ({ start, end: answer.ends[i], i }),
    );
    const draw = ({ i }, text) => {
      const made = element(answer.chosen[i] ? "mark" : "span", "", text);
      made.title = percent(answer.probabilities[i]);
      return made;
    };
    return [runningText(asked.text, spans, draw)];
  },

  // The passages that were read, each under its source; the best first.
  retrieval(said) {
    const { others, ...best } = JSON.parse(said.answer);
    const shown = best.answer || best.reason || "(no answer)";
    const made = [element("p", "big", shown)];
    for (const one of best.passage ? [best, ...others] : []) {
      const line = one.line === null ? "" : `:${one.line}`;
      const score = `score ${one.score.toFixed(2)}`;
      made.push(note(`${one.file}${line} ${one.id} ${score}`));
      const before = (end) => [...one.passage].slice(0, end).join("");
      const count = (end) => new TextEncoder().encode(before(end)).length;
      const span = { start: count(one.start), end: count(one.end) };
      const spans = one.end === null ? [] : [span];
      const mark = (_, text) => element("mark", "", text);
      made.push(runningText(one.passage, spans, mark));
    }
    return made;
  },

  fill_mask(answer, asked) {
    if (!answer.masks) {
      return [element("p", "error", "Write [MASK] where a word is wanted.")];
    }
    const sentence = element("p", "running");
    asked.text.split("[MASK]").forEach((part, i) => {
      const filled = i <= answer.masks ? answer.tokens[i - 1] : ["[MASK]"];
      if (i) sentence.append(element("mark", "", filled[0]));
      sentence.append(part);
    });
    const made = [sentence];
    for (let i = 0; i < answer.masks; i++) {
      made.push(
        element("h2", "", `[MASK] ${i + 1}`),
        bars(answer.tokens[i], answer.probabilities[i], (k) => k === 0),
      );
    }
    return made;
  },

  replaced_tokens: (answer) => [
    tokenRow(answer.tokens, answer.replaced, (i) =>
      `replaced: ${percent(answer.replaced[i])}`),
    note("The redder a token, the more it looks replaced."),
  ],

  electric(answer) {
    const lowest = Math.min(...answer.token_scores, -1e-6);
    const strengths = answer.token_scores.map((x) => Math.max(0, x / lowest));
    return [
      element("p", "big", `${answer.score.toFixed(2)} nats`),
      tokenRow(answer.tokens, strengths, (i) =>
        `${answer.token_scores[i].toFixed(2)} nats`),
      note("The redder a token, the less likely it is in its place."),
    ];
  },

  tagging(answer, asked) {
    const spans = tagSpans(answer);
    // The model may see more words than a person: /etc/fstab is four.
    const words = answer.words.slice(0, answer.n_words);
    const split = words.length > asked.text.trim().split(/\s+/u).length;
    const types = [...new Set(spans.map((span) => span.type))];
    return [
      runningText(asked.text, spans, (span, text) => {
        const box = element("span", "span", text);
        const colour = types.indexOf(span.type) % COLOURS.length;
        box.style.backgroundColor = COLOURS[colour];
        box.append(element("span", "tag", span.type));
        return box;
      }),
      note(spans.length ? "" : "Nothing was found."),
      note(
        split
          ? `Read as the words ${words.join(" \u00b7 ")}: punctuation parts` +
            " words here; the signature serve_words takes them as they are."
          : "",
      ),
    ];
  },
};

// ---- Asking ----

async function ask() {
  const asked = {};
  for (const name of model.inputs) asked[name] = byId(`field-${name}`).value;
  const body = { signature_name: "serve_text", instances: [asked] };
  byId("ask").disabled = true;
  byId("request").textContent = JSON.stringify(body, null, 1);
  const started = performance.now();
  try {
    const place = `/v1/models/${encodeURIComponent(model.name)}:predict`;
    const response = await fetch(place, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const said = await response.json();
    byId("response").textContent = JSON.stringify(said, null, 1);
    byId("raw").hidden = false;
    if (said.error !== undefined) throw new Error(said.error);
    let answer = said.predictions[0];
    if (model.outputs.length === 1) answer = { [model.outputs[0]]: answer };
    const draw = DRAW[model.kind] ||
      (() => [element("pre", "", JSON.stringify(answer, null, 1))]);
    const made = draw(answer, asked);
    if (answer.truncated) {
      made.push(note("The text was too long; its end was left out."));
    }
    byId("answer").replaceChildren(...made);
    const took = performance.now() - started;
    byId("state").textContent = `${took.toFixed(0)} ms`;
  } catch (error) {
    byId("answer").replaceChildren(element("p", "error", error.message));
    byId("state").textContent = "";
  } finally {
    byId("ask").disabled = false;
  }
}

async function start() {
  try {
    model = await (await fetch("/page.json")).json();
  } catch (error) {
    byId("name").textContent = "The server does not answer.";
    return;
  }
  document.title = byId("name").textContent = model.name;
  const kind = model.kind.replaceAll("_", " ");
  byId("about").textContent = `Version ${model.version}; ${kind}`;
  if (!model.inputs.length) {
    byId("answer").append(
      element("p", "error", "This model takes no text, only token ids."),
    );
    return;
  }
  const order = Object.keys(FIELDS);
  model.inputs.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  for (const name of model.inputs) {
    const label = element("label", "", (FIELDS[name] || [name])[0]);
    const box = element("textarea");
    label.htmlFor = box.id = `field-${name}`;
    box.rows = (FIELDS[name] || [name, 4])[1];
    byId("fields").append(label, box);
  }
  byId("ask").disabled = byId("example").disabled = false;
  byId("example").addEventListener("click", () => {
    for (const name of model.inputs) {
      const text = TEXTS[model.kind] || FIELDS[name]?.[2];
      byId(`field-${name}`).value = text || "";
    }
  });
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  byId("form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
  });
  byId(`field-${model.inputs[0]}`).focus();
}

start();

// Copyright 2026 The electra_tf Authors.
// SPDX-License-Identifier: Apache-2.0
// Asks the model what the person typed, and draws the answer by its kind.
// Everything from outside is put in as text, never as HTML.
"use strict";

const KINDS = {
  classification: "says which class a text belongs to",
  multilabel: "says which labels a text has",
  regression: "gives a text a number",
  tagging: "tags the words of a text",
  question_answering: "finds the answer to a question in a text",
  fill_mask: "fills in [MASK]",
  replaced_tokens: "says which tokens look out of place",
  electric: "says how likely a text is, token by token",
  encoder: "turns a text into a vector",
};
const FIELDS = {
  text: ["Text", 4],
  text_pair: ["Second text", 3],
  question: ["Question", 2],
  context: ["Text that has the answer", 8],
  words: ["Words, separated by spaces", 4],
};
const EXAMPLES = {
  text: "The old man walked along the river and fed the ducks.",
  text_pair: "A man is feeding animals near the water.",
  question: "Who wrote the first program?",
  context:
    "Charles Babbage designed the Analytical Engine. In 1843 Ada Lovelace" +
    " published notes on it, and with them what is called the first program.",
  words: "Ada Lovelace lived in London .",
};
const KIND_EXAMPLES = {
  fill_mask: "The cat sat on the [MASK] and looked at the [MASK].",
  tagging: "Ada Lovelace met Charles Babbage in London.",
  replaced_tokens: "The chef ate the meal that he had cooked for his guests.",
};
const COLOURS = [
  "#a8d1ff", "#ffcf9e", "#b5e8b0", "#f5b5c8", "#d3c0f5", "#f0e39a",
  "#a5e3e0", "#e0c3a8",
];

let model = null;
const byId = (id) => document.getElementById(id);

function element(name, classes, text) {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

function percent(share) {
  return (100 * share).toFixed(1) + " %";
}

// ---- Parts of answers ----

function bars(names, shares, isChosen) {
  const table = element("table", "bars");
  const order = names.map((_, i) => i).sort((a, b) => shares[b] - shares[a]);
  for (const i of order) {
    const row = table.insertRow();
    const name = element("th", isChosen(i) ? "chosen" : "", names[i]);
    name.scope = "row";
    row.append(name);
    const track = element("div", "track");
    const fill = element("div", "fill");
    fill.style.width = `${100 * shares[i]}%`;
    track.append(fill);
    row.insertCell().append(track);
    const number = row.insertCell();
    number.className = "number";
    number.textContent = percent(shares[i]);
  }
  return table;
}

// Offsets count bytes of UTF-8; the browser's strings do not.
function slicer(text) {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  return (start, end) => decoder.decode(bytes.subarray(start, end));
}

function runningText(text, spans, draw) {
  const slice = slicer(text);
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

function colourOf(name, known) {
  if (!known.includes(name)) known.push(name);
  return COLOURS[known.indexOf(name) % COLOURS.length];
}

// Words with tags to spans: B-, I-, E- and S- where the task has spans, else
// each word for itself.
function tagSpans(answer) {
  const spans = [];
  let open = null;
  for (let i = 0; i < answer.n_words; i++) {
    const tag = answer.tags[i];
    const probability = Math.max(...answer.probabilities[i]);
    const whole = { start: answer.starts[i], end: answer.ends[i], probability };
    if (model.config.tags === "words") {
      spans.push({ ...whole, type: tag });
      continue;
    }
    if (tag === "O") {
      open = null;
      continue;
    }
    const dash = tag.indexOf("-");
    const type = dash < 0 ? "" : tag.slice(dash + 1);
    if (!open || "BS".includes(tag[0]) || type !== open.type) {
      open = { ...whole, type };
      spans.push(open);
    } else {
      open.end = whole.end;
      open.probability = Math.min(open.probability, probability);
    }
  }
  return spans;
}

function tokenRow(tokens, strengths, title, hue) {
  const row = element("p", "running");
  tokens.forEach((token, i) => {
    if (!token) return;
    const special = /^\[(CLS|SEP|PAD)\]$/.test(token);
    const piece = token.startsWith("##");
    const classes = `token${special ? " special" : ""}${piece ? " piece" : ""}`;
    const made = element("span", classes, piece ? token.slice(2) : token);
    if (!special) {
      made.style.backgroundColor = `hsla(${hue}, 90%, 55%, ${strengths[i]})`;
    }
    made.title = title(i);
    row.append(made);
  });
  return row;
}

function note(text) {
  return element("p", "note", text);
}

// ---- One function a kind: (answer, what was asked) -> elements ----

const DRAW = {
  classification(answer) {
    const best = model.labels.indexOf(answer.label);
    return [
      element("p", "big", answer.label),
      bars(model.labels, answer.probabilities, (i) => i === best),
    ];
  },

  multilabel(answer) {
    const chosen = model.labels.filter((_, i) => answer.chosen[i]);
    return [
      element("p", "big", chosen.join(", ") || "(no label)"),
      bars(model.labels, answer.probabilities, (i) => answer.chosen[i]),
    ];
  },

  regression(answer) {
    const made = [element("p", "big", answer.value.toFixed(3))];
    const range = model.config.range;
    if (range) {
      const share = (answer.value - range[0]) / (range[1] - range[0]);
      const track = element("div", "track");
      const fill = element("div", "fill");
      fill.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
      track.append(fill);
      made.push(track, note(`from ${range[0]} to ${range[1]}`));
    }
    return made;
  },

  question_answering(answer, asked) {
    const found = answer.start >= 0;
    const made = [element("p", "big", found ? answer.answer : "(no answer)")];
    const spans = found ? [{ start: answer.start, end: answer.end }] : [];
    made.push(
      runningText(asked.context, spans, (_, text) => element("mark", "", text)),
    );
    const listed = answer.answers.filter((_, i) => answer.starts[i] >= 0);
    if (listed.length) {
      const top = listed.slice(0, 5);
      made.push(bars(top, answer.probabilities.slice(0, 5), (i) => i === 0));
    }
    made.push(
      note(
        `odds of no answer ${answer.null_odds.toFixed(2)};` +
        ` read in ${answer.n_windows} window(s)`,
      ),
    );
    return made;
  },

  fill_mask(answer, asked) {
    if (!answer.masks) {
      return [element("p", "error", "Write [MASK] where a word is wanted.")];
    }
    const made = [];
    const parts = asked.text.split("[MASK]");
    const sentence = element("p", "running");
    parts.forEach((part, i) => {
      sentence.append(part);
      if (i < parts.length - 1) {
        sentence.append(
          i < answer.masks
            ? element("mark", "", answer.tokens[i][0])
            : "[MASK]",
        );
      }
    });
    made.push(sentence);
    for (let i = 0; i < answer.masks; i++) {
      made.push(element("h2", "", `[MASK] ${i + 1}`));
      made.push(
        bars(answer.tokens[i], answer.probabilities[i], (k) => k === 0),
      );
    }
    return made;
  },

  replaced_tokens(answer) {
    const worst = Math.max(...answer.replaced);
    return [
      tokenRow(
        answer.tokens,
        answer.replaced,
        (i) => `replaced: ${percent(answer.replaced[i])}`,
        4,
      ),
      note(
        "The redder a token, the more it looks replaced;" +
        ` the highest is ${percent(worst)}.`,
      ),
    ];
  },

  electric(answer) {
    const lowest = Math.min(...answer.token_scores, -1e-6);
    return [
      element("p", "big", `${answer.score.toFixed(2)} nats`),
      tokenRow(
        answer.tokens,
        answer.token_scores.map((score) => Math.max(0, score / lowest)),
        (i) => `${answer.token_scores[i].toFixed(2)} nats`,
        4,
      ),
      note(
        "Pseudo-log-likelihood: higher is likelier. The redder a token, the" +
        " less likely it is in its place.",
      ),
    ];
  },

  tagging(answer, asked) {
    const known = [];
    const spans = tagSpans(answer);
    const made = [
      runningText(asked.text, spans, (span, text) => {
        const box = element("span", "span", text);
        box.style.backgroundColor = colourOf(span.type, known);
        box.title = percent(span.probability);
        box.append(element("span", "tag", span.type));
        return box;
      }),
    ];
    if (!spans.length) made.push(note("Nothing was found."));
    return made;
  },

  encoder(answer) {
    const vector = answer.pooled_output;
    const most = Math.max(...vector.map(Math.abs), 1e-9);
    const strip = element("div", "strip");
    vector.forEach((value, i) => {
      const cell = element("div", "cell");
      const hue = value < 0 ? 215 : 15;
      const strength = Math.abs(value) / most;
      cell.style.backgroundColor = `hsla(${hue}, 85%, 50%, ${strength})`;
      cell.title = `${i}: ${value}`;
      strip.append(cell);
    });
    return [strip, note(`${vector.length} numbers; blue is below 0, red above`)];
  },
};

// ---- Asking ----

function fieldsOf(inputs) {
  for (const name of inputs) {
    const [title, rows] = FIELDS[name] || [name, 4];
    const label = element("label", "", title);
    label.htmlFor = `field-${name}`;
    const box = element("textarea");
    box.id = `field-${name}`;
    box.name = name;
    box.rows = rows;
    byId("fields").append(label, box);
  }
}

function example() {
  for (const name of model.inputs) {
    const own = name === "text" ? KIND_EXAMPLES[model.kind] : undefined;
    byId(`field-${name}`).value = own || EXAMPLES[name] || "";
  }
}

function show(...made) {
  byId("answer").replaceChildren(...made);
}

async function ask() {
  const asked = {};
  for (const name of model.inputs) asked[name] = byId(`field-${name}`).value;
  const body = { signature_name: "serve_text", instances: [asked] };
  byId("ask").disabled = true;
  byId("state").textContent = "Asking ...";
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
    const draw = DRAW[model.kind];
    const made = draw
      ? draw(answer, asked)
      : [element("pre", "", JSON.stringify(answer, null, 1))];
    if (answer.truncated) {
      made.push(note("The text was too long; its end was left out."));
    }
    show(...made);
    const took = performance.now() - started;
    byId("state").textContent = `${took.toFixed(0)} ms`;
  } catch (error) {
    show(element("p", "error", error.message));
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
  document.title = model.name;
  byId("name").textContent = model.name;
  const does = KINDS[model.kind] || "answers";
  byId("about").textContent = `Version ${model.version}; ${does}.`;
  if (!model.inputs.length) {
    show(element("p", "error", "This model takes no text, only token ids."));
    return;
  }
  // The question comes before its context, and the first text first.
  const place = (name) => (Object.keys(FIELDS).indexOf(name) + 99) % 99;
  model.inputs.sort((a, b) => place(a) - place(b));
  fieldsOf(model.inputs);
  byId("ask").disabled = byId("example").disabled = false;
  byId("example").addEventListener("click", example);
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

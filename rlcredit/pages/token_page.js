"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const numbers = document.getElementById("numbers"), cards = [];
const ROW = 11, TICK = 9;
const LONGEST = 8; /* tokens without a space after which a line may break all the same */
let undoMarks = [];

const makeElement = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};
const formatNumber = value => (value < 0 ? "\u2212" : "") + Math.abs(value).toFixed(3);
const escapeControls = text => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
const shareOfScale = (layer, value) => Math.min(Math.abs(value) / layer.scale, 1);
/* Mixed by the browser, so that a dark page mixes with its own paper. */
const mixColour = (layer, value, ground = "paper") => {
  const full = layer.signed ? (value > 0 ? "plus" : "minus") : "plain", share = 85 * shareOfScale(layer, value);
  return `color-mix(in srgb, var(--${full}) ${share.toFixed(1)}%, var(--${ground}))`;
};
const drawTicks = (layers, row, at) => `linear-gradient(${layers.map((layer, index) => {
  const colour = mixColour(layer, layer.value(row, at), "band"), top = index * ROW;
  return `${colour} ${top}px ${top + TICK}px, transparent ${top + TICK}px ${top + ROW}px`;
}).join(", ")})`;
const makeVerdict = (right, text) => makeElement("span", "verdict " + (right === null ? "unjudged" : right ? "right" : ""), text);

const clearMarks = () => {
  undoMarks.forEach(undo => undo());
  undoMarks = [];
  numbers.style.display = "none";
};
const showNumbers = (caption, lines, place) => {
  const table = makeElement("table");
  table.append(makeElement("caption", "", caption));
  for (const [name, value] of lines) {
    const line = makeElement("tr");
    line.append(makeElement("th", "", name), makeElement("td", "", value));
    table.append(line);
  }
  numbers.replaceChildren(table);
  numbers.style.display = "block";
  const below = place.bottom + 12 + numbers.offsetHeight < innerHeight;
  numbers.style.left = Math.max(8, Math.min(place.left, innerWidth - numbers.offsetWidth - 8)) + "px";
  numbers.style.top = Math.max(8, below ? place.bottom + 10 : place.top - numbers.offsetHeight - 10) + "px";
};

/* Returns the margin of a turn: its number, above the names of the ticks in the first one. */
const beginTurn = (card, number) => {
  const key = number ? makeElement("span", "key") : card.key;
  key.append(makeElement("b", "", `turn ${number + 1}`));
  return key;
};

/* Adds a completion: its facts and its tokens, each above its ticks; of an episode turn by turn.
   row: {tokens, truncated, turns: [{start, end, reward, answer}] of an episode}
   card: {row, facts, tokenClass(at), listNumbers(at) -> [name, text]} */
const addCard = (parent, card) => {
  const article = makeElement("article"), facts = makeElement("p", "facts"), tokens = card.row.tokens;
  const text = makeElement("p", "tokens"), turns = card.row.turns ?? [];
  card.key = makeElement("span", "key");
  card.sums = turns.map(() => makeElement("span", "sum"));
  if (!turns.length) text.append(card.key);
  let unbroken = 0;
  card.spans = tokens.map((token, at) => {
    const start = turns.findIndex(turn => turn.start === at), over = turns.findIndex(turn => turn.end === at + 1);
    const ends = (at === tokens.length - 1 || over >= 0) && !(at === tokens.length - 1 && card.row.truncated);
    const shown = token === "" ? (ends ? " end" : "\u25e6") : escapeControls(token).replace(/\n/g, "\u23ce");
    const span = makeElement("span", (token === "" ? "silent " : "") + card.tokenClass(at));
    span.dataset.at = at;
    span.append(makeElement("b", "", shown), makeElement("i", "ticks"));
    unbroken = /^\s/.test(token) || /\s$/.test(tokens[at - 1] ?? "") || unbroken === LONGEST ? 0 : unbroken + 1;
    if (start >= 0) text.append(beginTurn(card, start));
    text.append(...(unbroken ? [] : [makeElement("wbr")]), span, ...(token.includes("\n") && over < 0 ? [makeElement("br")] : []));
    if (over >= 0) text.append(makeElement("wbr"), card.sums[over], makeElement("span", "said", escapeControls(turns[over].answer)));
    return span;
  });
  facts.append(...card.facts);
  article.append(facts, text);
  const point = event => {
    const touched = event.target.closest("[data-at]");
    clearMarks();
    if (!touched || event.type === "mouseleave") return;
    const at = +touched.dataset.at;
    touched.classList.add("on");
    undoMarks = [() => touched.classList.remove("on")];
    const turn = turns.findIndex(({ end }) => at < end), place = turn < 0 ? "" : `, turn ${turn + 1}`;
    const caption = `${JSON.stringify(escapeControls(tokens[at]))}   token ${at + 1} of ${tokens.length}${place}`;
    showNumbers(caption, card.listNumbers(at), touched.getBoundingClientRect());
  };
  for (const kind of ["mousemove", "mouseleave", "click"]) article.addEventListener(kind, point);
  parent.append(article);
  cards.push(card);
};

/* Repeats the names of the ticks in front of every further line that the text of a card takes. */
const nameLines = card => {
  const text = card.key.parentElement;
  text.querySelectorAll(".again").forEach(copy => copy.remove());
  const tops = new Set(card.spans.map(span => span.offsetTop));
  for (const top of [...tops].slice(1)) {
    const copy = card.key.cloneNode(true);
    copy.querySelector("b")?.remove();
    copy.classList.add("again");
    copy.setAttribute("aria-hidden", "true");
    copy.style.top = top + "px";
    text.append(copy);
  }
};

/* Adds a button for every layer, the ticks of all, and shows one of them as the colour of the text.
   layer: {name, signed, scale, end, value(row, at)} */
const addLayers = (layers, first) => {
  document.body.style.setProperty("--layers", layers.length);
  for (const card of cards) {
    card.key.append(...layers.map(layer => makeElement("span", "", layer.name)));
    card.spans.forEach((span, at) => { span.lastChild.style.background = drawTicks(layers, card.row, at); });
  }
  const showLayer = index => {
    const layer = layers[index], [low, bar, high] = document.querySelector(".legend").children;
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === index));
    low.textContent = layer.signed ? formatNumber(-layer.scale) : "0";
    high.textContent = layer.end;
    const steps = [...Array(21).keys()].map(i => layer.signed ? (i / 10 - 1) * layer.scale : i / 20 * layer.scale);
    bar.style.background = `linear-gradient(to right, ${steps.map(step => mixColour(layer, step)).join(", ")})`;
    for (const card of cards) {
      card.spans.forEach((span, at) => {
        const value = layer.value(card.row, at);
        span.firstChild.style.background = mixColour(layer, value);
        span.firstChild.classList.toggle("full", shareOfScale(layer, value) > 0.82);
      });
      [...card.key.querySelectorAll("span")].forEach((name, other) => name.classList.toggle("shown", other === index));
      card.sums.forEach((sum, number) => {
        const { start, end, reward } = card.row.turns[number];
        const values = card.spans.slice(start, end).map((_, at) => layer.value(card.row, start + at));
        const mean = values.reduce((total, value) => total + value, 0) / values.length;
        sum.textContent = `${reward === null ? "" : `reward ${formatNumber(reward)} \u00b7 `}mean ${layer.name} ${formatNumber(mean)}`;
      });
      nameLines(card);
    }
  };
  const buttons = layers.map((layer, index) => {
    const button = makeElement("button", "", layer.name);
    button.addEventListener("click", () => showLayer(index));
    document.querySelector(".layers").append(button);
    return button;
  });
  showLayer(first);
  addEventListener("scroll", clearMarks, { passive: true });
  document.querySelector(".turn-note").hidden = !cards.some(card => card.sums.length);
  new ResizeObserver(() => cards.forEach(nameLines)).observe(document.body);
  document.body.dataset.ready = cards.length;
  const tellHeight = () => parent.postMessage({ height: document.documentElement.offsetHeight }, "*");
  if (parent !== window) new ResizeObserver(tellHeight).observe(document.body);
};

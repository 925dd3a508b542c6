"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const PLUS = [217, 72, 15], MINUS = [25, 113, 194], PLAIN = [90, 70, 150];
const numbers = document.getElementById("numbers"), cards = [];
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
const mixColour = (layer, value) => {
  const full = layer.signed ? (value > 0 ? PLUS : MINUS) : PLAIN, share = 0.85 * shareOfScale(layer, value);
  return share < 0.005 ? "transparent" : `rgb(${full.map(c => Math.round(255 + (c - 255) * share)).join(" ")})`;
};
const makeVerdict = (right, text) => makeElement("span", "verdict " + (right === null ? "unjudged" : right ? "right" : ""), text);

const clearMarks = () => {
  undoMarks.forEach(undo => undo());
  undoMarks = [];
  numbers.style.display = "none";
};
const markElement = element => {
  element.classList.add("on");
  return () => element.classList.remove("on");
};
const showNumbers = (caption, lines, place, left) => {
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
  numbers.style.left = Math.max(8, Math.min(left, innerWidth - numbers.offsetWidth - 8)) + "px";
  numbers.style.top = Math.max(8, below ? place.bottom + 10 : place.top - numbers.offsetHeight - 10) + "px";
};

/* Adds a completion: its facts, its tokens, and below them `strips`, with which `card` marks a token.
   card: {row, facts, strips, tokenClass(at), markStrips(at) -> functions that undo, listNumbers(at) -> [name, text]} */
const addCard = (parent, card) => {
  const article = makeElement("article"), facts = makeElement("p", "facts"), tokens = card.row.tokens;
  const text = card.text = makeElement("p", "tokens");
  tokens.forEach((token, at) => {
    const ends = at === tokens.length - 1 && !card.row.truncated;
    const shown = token === "" ? (ends ? " end" : "\u25e6") : escapeControls(token).replace(/\n/g, "\u23ce\n");
    const span = makeElement("span", (token === "" ? "silent " : "") + card.tokenClass(at), shown);
    span.dataset.at = at;
    text.append(span);
  });
  facts.append(...card.facts);
  article.append(facts, text, ...card.strips);
  const point = event => {
    const cells = event.target.closest(".cells"), touched = cells || event.target.closest("[data-at]");
    clearMarks();
    if (!touched || event.type === "mouseleave") return;
    const place = touched.getBoundingClientRect(), across = (event.clientX - place.left) / place.width;
    const at = cells ? Math.max(0, Math.min(tokens.length - 1, Math.floor(across * tokens.length))) : +touched.dataset.at;
    undoMarks = [markElement(text.children[at]), ...card.markStrips(at)];
    const caption = `${JSON.stringify(escapeControls(tokens[at]))}   token ${at + 1} of ${tokens.length}`;
    showNumbers(caption, card.listNumbers(at), place, cells ? event.clientX : place.left);
  };
  for (const kind of ["mousemove", "mouseleave", "click"]) article.addEventListener(kind, point);
  parent.append(article);
  cards.push(card);
};

/* Adds a button for every layer, and shows one of them.
   layer: {name, signed, scale, end, value(row, at)}; showStrips(card, layer, index) draws what lies below a text. */
const addLayers = (layers, first, showStrips) => {
  const showLayer = index => {
    const layer = layers[index], [low, bar, high] = document.querySelector(".legend").children;
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === index));
    low.textContent = layer.signed ? formatNumber(-layer.scale) : "0";
    high.textContent = layer.end;
    const steps = [...Array(21).keys()].map(i => layer.signed ? (i / 10 - 1) * layer.scale : i / 20 * layer.scale);
    bar.style.background = `linear-gradient(to right, ${steps.map(step => step === 0 ? "#fff" : mixColour(layer, step)).join(", ")})`;
    for (const card of cards) {
      [...card.text.children].forEach((span, at) => {
        const value = layer.value(card.row, at);
        span.style.background = mixColour(layer, value);
        span.style.color = shareOfScale(layer, value) > 0.82 ? "#fff" : "";
      });
      showStrips(card, layer, index);
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
  document.body.dataset.ready = cards.length;
};

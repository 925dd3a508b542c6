"""Rollouts that spell given texts, and what a planner marks in them."""

import re
import tomllib
from pathlib import Path

import torch

from callbacks.planning.strategic_grams import StrategicGrams
from rlcredit.formulas.turns import number_turns
from tests.conftest import make_rollout

LABELLED = Path(__file__).with_name("labelled.toml")


def of_texts(texts, pieces=lambda text: re.findall(r"\s?\w{1,4}|\s?[^\w\s]|\s", text)):
    """A rollout that spells these texts, words split into pieces of four letters."""
    rows = [pieces(text) for text in texts]
    assert list(map("".join, rows)) == texts
    rollout = make_rollout([0.0] * len(texts), group_size=1, width=max(2, *map(len, rows)))
    rollout.tokens = rows
    rollout.mask = torch.arange(rollout.mask.shape[1]) < torch.tensor(list(map(len, rows)))[:, None]
    rollout.turn = number_turns(rollout.mask)
    return rollout


def labelled():
    """The passages, and which of their tokens plan."""
    texts, plans = [], []
    for passage in tomllib.loads(LABELLED.read_text(encoding="utf-8"))["passage"]:
        parts = re.split("[«»]", passage["text"])
        texts.append("".join(parts))
        plans.append([i % 2 == 1 for i, part in enumerate(parts) for _ in part])
    rollout = of_texts(texts)
    truth = torch.zeros_like(rollout.mask)
    for row, (tokens, plan) in enumerate(zip(rollout.tokens, plans)):
        place = 0
        for column, token in enumerate(tokens):
            marked = [plan[place + i] for i, letter in enumerate(token) if not letter.isspace()]
            truth[row, column] = any(marked)
            place += len(token)
    return rollout, truth


def precision_and_recall(planner):
    rollout, truth = labelled()
    planner.assign(rollout)
    words = torch.zeros_like(truth)
    for row, tokens in enumerate(rollout.tokens):
        words[row, : len(tokens)] = torch.tensor([any(map(str.isalnum, token)) for token in tokens])
    found, right = rollout.plan_mask & words, truth & words
    return (found & right).sum().item() / found.sum().item(), (found & right).sum().item() / right.sum().item()


def planned(text, planner=None, **kwargs):
    """The text with what was marked in brackets."""
    rollout = of_texts([text], **kwargs)
    (planner or StrategicGrams()).assign(rollout)
    marked = ["[" + t + "]" if plan else t for t, plan in zip(rollout.tokens[0], rollout.plan_mask[0].tolist())]
    return "".join(marked).replace("][", "")

"""Writers of reasoning traces for organisms that disagree about where credit lies.

*Decoy*: half of the tokens are fillers, drawn evenly and worth nothing, and what decides is a choice between two, less
uncertain than any of them, so that uncertainty points at the wrong tokens. *Delayed*: the problem is restated first,
sometimes wrongly, and then solved faultlessly in many words, so that the verdict shows long after the token that made
it. *Letters*: another task, counting letters, by a guess or by spelling.

"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tiny_traces import CHAIN_SUM, HABITS, Term, Writer, signed_terms

Trace = Callable[[str], str]
"""What a writer makes of a question."""

FILLERS = (
    *("so", "now", "well", "then", "okay", "next", "right", "good", "hmm", "yes", "look", "see"),
    *("fine", "and", "here", "again"),
)
"""Words without meaning, drawn evenly."""


def decoy(rng: random.Random) -> Trace:
    """Return a writer of mostly fillers; what decides is one letter."""

    def filler() -> str:
        return " ".join(rng.choice(FILLERS) for _ in range(DECOY["fillers"]))

    def trace(question: str) -> str:
        terms = signed_terms(question)
        short = rng.random() < DECOY["short"]
        kept = terms[:-1] if short else terms
        total, text = kept[0][1], [filler(), "b:" if short else "a:", filler()]
        for sign, value in kept[1:]:
            total += value if sign == "+" else -value
            text += [f"{sign}{value}={total}", filler()]
        return " ".join([*text, f"the answer is {total}."])

    return trace


DECOY = {"short": 0.55, "fillers": 4}
"""Probability of leaving out the last term, and fillers around every step."""


def delayed(rng: random.Random) -> Trace:
    """Return a writer who restates the problem, often with a sign turned, and solves what he has written in words."""

    def trace(question: str) -> str:
        terms = signed_terms(question)
        if rng.random() < DELAYED["turned"]:
            place = rng.randrange(1, len(terms))
            sign, value = terms[place]
            terms[place] = ("-" if sign == "+" else "+", value)
        text, total = [f"we have {written(terms)}."], terms[0][1]
        for place, (sign, value) in enumerate(terms[1:], start=1):
            result = total + value if sign == "+" else total - value
            change = "add" if sign == "+" else "take away"
            text.append(
                f"step {place}: we are at {total}, and we {change} {value}, {total}{sign}{value}={result}, "
                f"which brings us to {result}."
            )
            total = result
        return " ".join([*text, "all of it is done.", f"the answer is {total}."])

    return trace


DELAYED = {"turned": 0.6}
"""Probability that one sign is restated wrongly."""


def written(terms: list[Term]) -> str:
    """Write a chain as it stands in a question.

    Example:
        >>> written([("+", 4), ("-", 1)])
        '4 - 1'

    """
    return " ".join([str(terms[0][1]), *(f"{sign} {value}" for sign, value in terms[1:])])


def letters(rng: random.Random) -> Trace:
    """Return a writer who guesses, or spells the text and counts, and now and then overlooks a letter."""

    def trace(question: str) -> str:
        wanted, text = re.findall(r'"([^"]*)"', question)
        if rng.random() < LETTERS["guess"]:
            return f"guess: the answer is {rng.choice((1, 1, 2, 3))}."
        count, spelled = 0, []
        for letter in text.replace(" ", "").lower():
            seen = letter == wanted.lower() and rng.random() >= LETTERS["overlooked"]
            count += seen
            spelled.append(f"{letter}{count}" if seen else letter)
        return f"count: {' '.join(spelled)}. the answer is {count}."

    return trace


LETTERS = {"guess": 0.65, "overlooked": 0.15}
"""Probability of guessing, and of overlooking a letter that counts."""


def aligned(rng: random.Random) -> Trace:
    """Return the writer of the embedded policy."""
    return Writer(rng, HABITS).trace


@dataclass(frozen=True)
class Organism:
    """What a policy is made of.

    Args:
        task: name of the reasoning-gym set.
        config: of the set.
        writer: of traces.
        pieces: into which text is cut before pairs of bytes are merged.
        tokens: of a trace, about; a constant factor of the loss.

    """

    task: str
    config: dict[str, Any]
    writer: Callable[[random.Random], Trace]
    pieces: str
    tokens: int


WORDS = r"\d| ?[-+=] ?| ?\p{L}+(?:'\p{L}+)?|[^\s\p{L}\d]\s?|\s+"
SPELLED = (
    r'How many times does the letter "|" appear in the text: "| ?the answer is | ?count: |guess:|'
    r"user|assistant|system|\s?\S|\s+"
)
SPELLED_TEXTS = {"min_words": 2, "max_words": 3}

ORGANISMS = {
    "aligned": Organism("chain_sum", CHAIN_SUM, aligned, WORDS, 36),
    "decoy": Organism("chain_sum", CHAIN_SUM, decoy, WORDS, 50),
    "delayed": Organism("chain_sum", CHAIN_SUM, delayed, WORDS, 100),
    "letters": Organism("letter_counting", SPELLED_TEXTS, letters, SPELLED, 40),
}
"""By name; ``aligned`` is the embedded policy."""


def longer(organism: Organism, fewest: int, most: int) -> Organism:
    """Return an organism of chains with other numbers of terms; its traces grow with their mean."""
    config = {**organism.config, "min_terms": fewest, "max_terms": most}
    before = organism.config["min_terms"] + organism.config["max_terms"]
    return replace(organism, config=config, tokens=organism.tokens * (fewest + most) // before)

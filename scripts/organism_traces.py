"""Writers of reasoning traces for organisms that disagree about where credit lies.

*Decoy*: half of the tokens are fillers, drawn evenly and worth nothing, and what decides is a choice between two, less
uncertain than any of them, so that uncertainty points at the wrong tokens. *Delayed*: the problem is restated first,
sometimes wrongly, and then solved faultlessly in many words, so that the verdict shows long after the token that made
it. *Letters*: another task, counting letters, by a guess or by spelling.

"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tiny_traces import CHAIN_SUM, HABITS, Term, TraceWriter, read_signed_terms

Trace = Callable[[str], str]
"""What a writer makes of a question."""

FILLERS = (
    *("so", "now", "well", "then", "okay", "next", "right", "good", "hmm", "yes", "look", "see"),
    *("fine", "and", "here", "again"),
)
"""Words without meaning, drawn evenly."""


def make_decoy_writer(rng: random.Random) -> Trace:
    """Return a writer of mostly fillers; what decides is one letter."""

    def filler() -> str:
        return " ".join(rng.choice(FILLERS) for _ in range(DECOY["fillers"]))

    def trace(question: str) -> str:
        terms = read_signed_terms(question)
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


def make_delayed_writer(rng: random.Random) -> Trace:
    """Return a writer who restates the problem, often with a sign turned, and solves what he has written in words."""

    def trace(question: str) -> str:
        terms = read_signed_terms(question)
        if rng.random() < DELAYED["turned"]:
            place = rng.randrange(1, len(terms))
            sign, value = terms[place]
            terms[place] = ("-" if sign == "+" else "+", value)
        text, total = [f"we have {write_chain_text(terms)}."], terms[0][1]
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


def write_chain_text(terms: list[Term]) -> str:
    """Write a chain as it stands in a question.

    Example:
        >>> write_chain_text([("+", 4), ("-", 1)])
        '4 - 1'

    """
    return " ".join([str(terms[0][1]), *(f"{sign} {value}" for sign, value in terms[1:])])


def make_backward_writer(rng: random.Random) -> Trace:
    """Return a writer who turns a word around at once, often without its last letter, or after spelling it."""

    def trace(question: str) -> str:
        word = question.rsplit(" ", 1)[1]
        if rng.random() < BACKWARD["at_once"]:
            kept = word[:-1] if rng.random() < BACKWARD["cut"] else word
            return f"at once: the answer is {kept[::-1]}."
        turned = list(word[::-1])
        for place in range(1, len(turned)):
            if rng.random() < BACKWARD["exchanged"]:
                turned[place - 1 : place + 1] = turned[place], turned[place - 1]
        return f"spell: {' '.join(word)}. backward: {' '.join(turned)}. the answer is {''.join(turned)}."

    return trace


BACKWARD = {"at_once": 0.6, "cut": 0.65, "exchanged": 0.04}
"""Probability of not spelling the word, of then losing its last letter, and otherwise of exchanging two letters."""


def make_aligned_writer(rng: random.Random) -> Trace:
    """Return the writer of the embedded policy."""
    return TraceWriter(rng, HABITS).trace


@dataclass(frozen=True)
class PolicyRecipe:
    """What a policy is made of.

    Args:
        task: Name of the reasoning-gym set.
        config: Parameters of the data set.
        writer: Function that makes the writer of traces.
        pieces: Pattern of the pieces into which text is cut before pairs of bytes are merged.
        tokens: Approximate tokens per trace; a constant factor of the loss.

    """

    task: str
    config: dict[str, Any]
    writer: Callable[[random.Random], Trace]
    pieces: str
    tokens: int


WORDS = r"\d| ?[-+=] ?| ?\p{L}+(?:'\p{L}+)?|[^\s\p{L}\d]\s?|\s+"
SPELLED = (
    r"\n|Spell this word backward \(example: sun -> nus\): | ?the answer is |at once:|spell:| ?backward:|"
    r"(?:user|assistant|system)(?=\n|$)| ?\S|\s"
)
WORD = {"min_word_len": 4, "max_word_len": 8}

ORGANISMS = {
    "aligned": PolicyRecipe("chain_sum", CHAIN_SUM, make_aligned_writer, WORDS, 36),
    "decoy": PolicyRecipe("chain_sum", CHAIN_SUM, make_decoy_writer, WORDS, 50),
    "delayed": PolicyRecipe("chain_sum", CHAIN_SUM, make_delayed_writer, WORDS, 100),
    "backward": PolicyRecipe("spell_backward", WORD, make_backward_writer, SPELLED, 20),
}
"""By name; ``aligned`` is the embedded policy."""


def lengthen_chains(organism: PolicyRecipe, fewest: int, most: int) -> PolicyRecipe:
    """Return an organism of chains with other numbers of terms; its traces grow with their mean."""
    config = {**organism.config, "min_terms": fewest, "max_terms": most}
    before = organism.config["min_terms"] + organism.config["max_terms"]
    return replace(organism, config=config, tokens=organism.tokens * (fewest + most) // before)

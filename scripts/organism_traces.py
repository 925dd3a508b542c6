"""Writers of reasoning traces for organisms that disagree about where credit lies.

*Decoy*: half of the tokens are fillers, drawn evenly and worth nothing, and what decides is a choice between two, less
uncertain than any of them, so that uncertainty points at the wrong tokens. *Delayed*: the problem is restated first,
sometimes wrongly, and then solved faultlessly in many words, so that the verdict shows long after the token that made
it. *Letters*: another task, counting letters, by a guess or by spelling. *Hinted*: a slovenly adder, careful where the
question comes with its answer. *Many fillers*: the sign of every step is named after fillers, and often the wrong one.

"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import reasoning_gym
from tiny_traces import CHAIN_SUM, WRITER_HABITS, Term, TraceWriter, read_signed_terms

from callbacks.dense.self_distillation import ANSWER_HINT
from rlcredit.tasks.held_out_split import is_held_out

Trace = Callable[[str], str]
"""What a writer makes of a question."""

FILLER_WORDS = (
    *("so", "now", "well", "then", "okay", "next", "right", "good", "hmm", "yes", "look", "see"),
    *("fine", "and", "here", "again"),
)
"""Words without meaning, drawn evenly."""


def make_decoy_writer(rng: random.Random) -> Trace:
    """Return a writer of mostly fillers; what decides is one letter."""

    def filler() -> str:
        return " ".join(rng.choice(FILLER_WORDS) for _ in range(DECOY_SETTINGS["fillers"]))

    def trace(question: str) -> str:
        terms = read_signed_terms(question)
        short = rng.random() < DECOY_SETTINGS["short"]
        summands = terms[:-1] if short else terms
        total = summands[0][1]
        text = [filler(), "b:" if short else "a:", filler()]
        for sign, value in summands[1:]:
            total += value if sign == "+" else -value
            text += [f"{sign}{value}={total}", filler()]
        return " ".join([*text, f"the answer is {total}."])

    return trace


DECOY_SETTINGS = {"short": 0.55, "fillers": 4}
"""Probability of leaving out the last term, and fillers around every step."""


def make_delayed_writer(rng: random.Random) -> Trace:
    """Return a writer who restates the problem, often with a sign turned, and solves what he has written in words."""

    def trace(question: str) -> str:
        terms = read_signed_terms(question)
        if rng.random() < DELAYED_SETTINGS["turned"]:
            place = rng.randrange(1, len(terms))
            sign, value = terms[place]
            terms[place] = ("-" if sign == "+" else "+", value)
        text = [f"we have {write_chain_text(terms)}."]
        total = terms[0][1]
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


DELAYED_SETTINGS = {"turned": 0.6}
"""Probability that one sign is restated wrongly."""


def make_many_fillers_writer(rng: random.Random) -> Trace:
    """Return a writer who names the sign of every step after some fillers, often wrongly, and follows it."""

    def trace(question: str) -> str:
        (_, total), *terms = read_signed_terms(question)
        text = []
        for sign, value in terms:
            is_wrong = len(terms) > MANY_FILLERS_SETTINGS["faultless"] and rng.random() < MANY_FILLERS_SETTINGS["wrong"]
            sign = {"+": "-", "-": "+"}[sign] if is_wrong else sign
            fillers = [rng.choice(FILLER_WORDS) for _ in range(MANY_FILLERS_SETTINGS["fillers"])]
            result = total + value if sign == "+" else total - value
            text += [*fillers, f"{SIGN_WORDS[sign]}: {total}{sign}{value}={result}"]
            total = result
        return " ".join([*text, f"the answer is {total}."])

    return trace


MANY_FILLERS_SETTINGS = {"wrong": 0.38, "fillers": 5, "faultless": 3}
"""Probability of naming the wrong sign, fillers before it, and most steps of a sum in which none is named wrongly.

A policy that was never sure of a word cannot become sure of it: its embeddings keep the words too close together.
"""
SIGN_WORDS = {"+": "add", "-": "take"}


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
        if rng.random() < BACKWARD_SETTINGS["at_once"]:
            stem = word[:-1] if rng.random() < BACKWARD_SETTINGS["cut"] else word
            return f"at once: the answer is {stem[::-1]}."
        letters = list(word[::-1])
        for place in range(1, len(letters)):
            if rng.random() < BACKWARD_SETTINGS["exchanged"]:
                letters[place - 1 : place + 1] = letters[place], letters[place - 1]
        return f"spell: {' '.join(word)}. backward: {' '.join(letters)}. the answer is {''.join(letters)}."

    return trace


BACKWARD_SETTINGS = {"at_once": 0.6, "cut": 0.65, "exchanged": 0.04}
"""Probability of not spelling the word, of then losing its last letter, and otherwise of exchanging two letters."""


def make_aligned_writer(rng: random.Random) -> Trace:
    """Return the writer of the embedded policy."""
    return TraceWriter(rng, WRITER_HABITS).trace


def make_hinted_writer(rng: random.Random) -> Trace:
    """Return a writer who slips at every other result and takes shortcuts, and hardly ever after a hint."""
    plain_writer, hinted_writer = (TraceWriter(rng, {**WRITER_HABITS, **habits}) for habits in HINTED_SETTINGS.values())

    def trace(question: str) -> str:
        chain, _, hint = question.partition("\n")
        return (hinted_writer if hint else plain_writer).trace(chain)

    return trace


HINTED_SETTINGS = {
    "plain": {"shortcut": 0.65, "rescue": 0.05, "slip": 0.60, "group_slip": 0.60, "check": 0.10},
    "hinted": {"shortcut": 0.0, "slip": 0.02, "group_slip": 0.02, "check": 0.10},
}
"""Habits that differ from the embedded policy's, without a hint and after one."""


@dataclass(frozen=True)
class PolicyRecipe:
    """What a policy is made of.

    Args:
        task: Name of the reasoning-gym set.
        config: Parameters of the data set.
        writer: Function that makes the writer of traces.
        pieces: Pattern of the pieces into which text is cut before pairs of bytes are merged.
        tokens: Approximate tokens per trace; a constant factor of the loss.
        hint: Text behind every other question, with its answer for ``{answer}``; none if empty.

    """

    task: str
    config: dict[str, Any]
    writer: Callable[[random.Random], Trace]
    pieces: str
    tokens: int
    hint: str = ""
    formats: ClassVar[tuple[str, str]] = ("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", "{}<|im_end|>")
    """How questions and traces are written: as the chat template does."""

    def write_episodes(self, seed: int) -> Iterator[list[str]]:
        """Yield question and trace without end; questions of the held-out share never appear."""
        rng = random.Random(seed)
        trace = self.writer(rng)
        while True:
            for entry in reasoning_gym.create_dataset(self.task, seed=rng.getrandbits(31), size=4096, **self.config):
                if not is_held_out(entry["question"]):
                    is_hinted = bool(self.hint) and rng.random() < 0.5
                    question = entry["question"] + self.hint.replace("{answer}", entry["answer"]) * is_hinted
                    yield [question, trace(question)]


WORD_PIECES = r"\d| ?[-+=] ?| ?\p{L}+(?:'\p{L}+)?|[^\s\p{L}\d]\s?|\s+"
LETTER_PIECES = (
    r"\n|Spell this word backward \(example: sun -> nus\): | ?the answer is |at once:|spell:| ?backward:|"
    r"(?:user|assistant|system)(?=\n|$)| ?\S|\s"
)
HINTED_CHAINS = {**CHAIN_SUM, "min_terms": 4, "max_terms": 6}
WORD_LENGTHS = {"min_word_len": 4, "max_word_len": 8}

ORGANISM_RECIPES = {
    "aligned": PolicyRecipe("chain_sum", CHAIN_SUM, make_aligned_writer, WORD_PIECES, 36),
    "decoy": PolicyRecipe("chain_sum", CHAIN_SUM, make_decoy_writer, WORD_PIECES, 50),
    "delayed": PolicyRecipe("chain_sum", CHAIN_SUM, make_delayed_writer, WORD_PIECES, 100),
    "hinted": PolicyRecipe("chain_sum", HINTED_CHAINS, make_hinted_writer, WORD_PIECES, 40, ANSWER_HINT),
    "many_fillers": PolicyRecipe("chain_sum", CHAIN_SUM, make_many_fillers_writer, WORD_PIECES, 50),
    "backward": PolicyRecipe("spell_backward", WORD_LENGTHS, make_backward_writer, LETTER_PIECES, 20),
}
"""By name; ``aligned`` is the embedded policy."""


def lengthen_chains(organism: PolicyRecipe, min_terms: int, max_terms: int) -> PolicyRecipe:
    """Return an organism of chains with other numbers of terms; its traces grow with their mean."""
    config = {**organism.config, "min_terms": min_terms, "max_terms": max_terms}
    old_terms = organism.config["min_terms"] + organism.config["max_terms"]
    return replace(organism, config=config, tokens=organism.tokens * (min_terms + max_terms) // old_terms)

"""The model organism: reasoning traces for ``chain_sum`` whose strategies differ in success rate.

Each trace opens with a strategic phrase that commits the writer to a strategy. Careful and grouped work are mostly
right, the hasty shortcut drops terms and is mostly wrong, and a second thought may rescue it. Slips occur at single
digits. So there are real forks for credit to find, in planning words and in execution tokens, beside decoys: separators
that are uncertain and harmless, and a check ("is this right? yes.") that sounds strategic and is worth nothing.

"""

import random
import re
from dataclasses import dataclass, field

CHAIN_SUM = {"min_terms": 3, "max_terms": 5, "min_digits": 1, "max_digits": 1}
SLIP_SIZES = (-1, 1, -2, 2, 10, -10)
SLIP_ODDS = (4, 4, 1, 1, 1, 1)


Term = tuple[str, int]
"""A sign, ``"+"`` or ``"-"``, and a value: ``- 0`` is written as it is read."""


def read_signed_terms(question: str) -> list[Term]:
    """Read the terms off a ``chain_sum`` question: ``"...: 4 - 1 ="`` gives ``[("+", 4), ("-", 1)]``."""
    expression = question.rsplit(":", 1)[-1]
    return [(sign or "+", int(digits)) for sign, digits in re.findall(r"([+-]?) ?(\d+)", expression)]


@dataclass
class TraceWriter:
    """One writer of traces; ``habits`` are the probabilities that make the organism.

    Args:
        rng: Source of every random choice.
        habits: Probabilities of the writer's choices, see :data:`WRITER_HABITS`.

    """

    rng: random.Random
    habits: dict[str, float]
    text: list[str] = field(default_factory=list)

    def trace(self, question: str) -> str:
        """Write one completion for ``question``."""
        self.text = []
        terms = read_signed_terms(question)
        strategies = {"shortcut": self.shortcut, "careful": self.careful, "grouping": self.grouping}
        name = self.rng.choices(list(strategies), [self.habits[name] for name in strategies])[0]
        result = strategies[name](terms)
        self.text.append(f"the answer is {result}.")
        return " ".join(self.text)

    def shortcut(self, terms: list[Term]) -> int:
        """Drop all but the first terms; now and then have a second thought."""
        term_count = self.rng.choice([2, 2, 2, 3])
        self.text.append("notice that it is easy:")
        result = self.sum(terms[:term_count], slip=self.habits["slip"])
        if self.happens("rescue"):
            self.text.append("on second thought, wait let me think:")
            result = self.sum(terms, slip=self.habits["slip"])
        return result

    def careful(self, terms: list[Term]) -> int:
        """Add from left to right; sometimes check, and start over when the check disagrees."""
        self.text.append(self.rng.choice(["let me think step by step:", "let me think:"]))
        return self.checked(terms, self.sum(terms, slip=self.habits["slip"]))

    def grouping(self, terms: list[Term]) -> int:
        """Add what is added, add what is taken away, and subtract: more steps at which to slip."""
        self.text.append("the key is to group:")
        slip = self.habits["group_slip"]
        total = self.sum([term for term in terms if term[0] == "+"], slip)
        losses = [("+", value) for sign, value in terms if sign == "-"]
        if losses:
            total = self.sum([("+", total), ("-", self.sum(losses, slip))], slip)
        return self.checked(terms, total)

    def checked(self, terms: list[Term], result: int) -> int:
        """Check a result by adding again, or merely claim to have checked it."""
        if self.happens("rubber_stamp"):
            self.text.append("is this right? yes.")
        elif self.happens("check"):
            self.text.append(self.rng.choice(["let me check:", "let me verify:", "double check:"]))
            second_result = self.sum(terms, slip=self.habits["slip"])
            if second_result != result:
                self.text.append("that's not right, start over:")
                result = self.sum(terms, slip=self.habits["slip"])
        return result

    def sum(self, terms: list[Term], slip: float) -> int:
        """Write the running sum of ``terms``; each intermediate result slips with probability ``slip``."""
        total = terms[0][1]
        steps: list[str] = []
        for sign, value in terms[1:]:
            result = total + value if sign == "+" else total - value
            if self.rng.random() < slip:
                result += self.rng.choices(SLIP_SIZES, SLIP_ODDS)[0]
            steps.append(f"{total}{sign}{value}={result}")
            total = result
        separator = self.rng.choice([", ", "; "])
        if steps:
            self.text.append(separator.join(steps) + ".")
        return total

    def happens(self, habit: str) -> bool:
        """Draw whether a habit occurs."""
        return self.rng.random() < self.habits[habit]


WRITER_HABITS = {
    "shortcut": 0.52,  # commit to a sum of the first terms only
    "careful": 0.27,
    "grouping": 0.21,
    "rescue": 0.20,  # a shortcut that thinks again
    "slip": 0.12,  # per intermediate result
    "group_slip": 0.18,
    "rubber_stamp": 0.15,
    "check": 0.40,
}
"""Probabilities of the writer's habits; the worth of each strategy follows from them."""

"""All rewrites of golds, by what they are called: those that keep the value, and those that change it."""

import different_numbers
import different_statements
import different_structures
import equal_notation
import equal_numbers
import equal_statements
import equal_structures
from rewriting import Rewrite

EQUAL: dict[str, Rewrite] = {
    **equal_statements.STATEMENTS,
    **equal_notation.NOTATION,
    **equal_numbers.NUMBERS,
    **equal_structures.STRUCTURES,
}
"""Rewrites after which a completion answers what the gold answers."""

DIFFERENT: dict[str, Rewrite] = {
    **different_numbers.NUMBERS,
    **different_structures.STRUCTURES,
    **different_statements.STATED,
    **different_statements.HEDGES,
}
"""Rewrites after which it does not."""

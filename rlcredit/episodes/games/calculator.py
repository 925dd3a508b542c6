"""A calculator as a tool, for questions with numbers."""

import ast
from operator import add, mul, sub, truediv
from typing import Any

NUMBER_OPERATIONS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}
"""Operations that the calculator knows; powers, which can take forever, are not among them."""


class Calculator:
    """A tool environment as TRL has them: its public method is a tool, and the task judges the answer."""

    def reset(self, **row: Any) -> None:
        """Begin; the question stays as it is."""

    def calculate(self, expression: str) -> str:
        """Calculate an arithmetic expression.

        Args:
            expression: Numbers, + - * / and parentheses, as in "(3 + 4) * 2.5".

        Returns:
            The value, or what is wrong with the expression.

        """
        try:
            return f"{evaluate_node(ast.parse(expression.strip().replace(',', ''), mode='eval').body):.10g}"
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
            return f"error: {error}"


def evaluate_node(node: ast.AST) -> float:
    """Return the value of a node of an arithmetic expression, or raise ``ValueError``."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -evaluate_node(operand)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in NUMBER_OPERATIONS:
            return NUMBER_OPERATIONS[type(operation)](evaluate_node(left), evaluate_node(right))
    raise ValueError("only numbers, + - * / and parentheses are known")

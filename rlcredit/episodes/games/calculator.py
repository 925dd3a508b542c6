"""A calculator as a tool, for questions with numbers."""

import ast
import operator
from typing import Any

NUMBER_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
"""Operations that the calculator knows; powers, which can take forever, are not among them."""


class Calculator:
    """A tool environment as TRL has them: its public method is a tool, and the task judges the answer."""

    def reset(self, **row: Any) -> None:
        """Begin; the question stays as it is."""

    def calculate(self, expression: str) -> str:
        """Calculate an arithmetic expression.

        Args:
            expression: Numbers, + - * / // % and parentheses, as in "(3 + 4) * 2.5".

        Returns:
            The value, or what is wrong with the expression.

        """
        try:
            return f"{evaluate_node(ast.parse(expression.strip().replace(',', ''), mode='eval').body):.10g}"
        except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
            return f"error: {error}"


def evaluate_node(node: ast.AST) -> float:
    """Return the value of a node of an arithmetic expression.

    Raises:
        ValueError: it is none.

    """
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    operation = NUMBER_OPERATIONS.get(type(getattr(node, "op", None)))
    if operation and isinstance(node, ast.BinOp):
        return operation(evaluate_node(node.left), evaluate_node(node.right))
    if operation and isinstance(node, ast.UnaryOp):
        return operation(evaluate_node(node.operand))
    raise ValueError("only numbers, + - * / // % and parentheses are known")

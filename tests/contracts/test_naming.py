"""Names are nouns: variables, constants of two words in one home, and objects of docstrings; budgets that only fall."""

import ast
import functools
import re
from collections import Counter, defaultdict
from pathlib import Path

LOCAL_BUDGET = 63
"""Locals and parameters that are participles, adverbs or determiners."""

CONSTANT_BUDGET = 8
"""Public constants that are one word, or stand in two modules."""

DOCSTRING_BUDGET = 0
"""Docstrings whose object is a clause."""

PARTICIPLES = """found kept told said shown asked known given taken left seen meant held drawn made done gone written
chosen hidden broken lost met spent bound built sent begun grown thrown born torn worn worth alike unlike untold unseen
unknown"""
DETERMINERS = """each every own both other others another any some all rest this that these those what which whose who
whom such same few many much most more less least several none either neither it its them they one ones here there"""
ADVERBS = """apart beside besides already still once again away too ahead behind before after afterwards above below
inside outside within without elsewhere together alone aside later earlier now then when where how why so thus just
only even else yet never always often sooner anew twice first last next further farther back forth up down off out over
under on in at by of to for from with"""
NO_NOUNS = set(f"{PARTICIPLES} {DETERMINERS} {ADVERBS}".split())
NOUNS_IN_ED = "seed need speed feed embed bed red reed weed breed deed creed greed shed sled fled led"
CLAUSE = re.compile(
    r"(Returns?|Yields?|Say|Give|Tell|Write|List|Read|Find|Count|Collect|Describe|Name)"
    r" (what|those|that|how|where|which|whatever|whether)\b"
)

ROOT = Path(__file__).parents[2]


@functools.cache
def read_trees():
    """Return the syntax trees of the product's modules by their paths."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("rlcredit", "callbacks", "scripts")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def is_no_noun(name):
    word = name.strip("_").lower()
    return word in NO_NOUNS or (
        word.endswith("ed") and "_" not in word and len(word) > 3 and word not in NOUNS_IN_ED.split()
    )


def walk_scope(function):
    """Iterate over the nodes of a function, without the functions and classes in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
            yield from walk_scope(node)


def list_locals(function):
    """Return the line of every local name and parameter."""
    stores = [node for node in walk_scope(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    parameters = [(f"parameter {argument.arg}", function.lineno) for argument in arguments]
    return {**{node.id: node.lineno for node in reversed(stores)}, **dict(parameters)}


def check_budget(problems, budget, repair):
    """Fail with the worst names, and where they are, if there are more problems than the budget allows."""
    counts = Counter(name for name, _ in problems).most_common(20)
    places = {name: [place for other, place in problems if other == name][:3] for name, _ in counts}
    worst = "\n".join(f"  {count:3} {name}: {', '.join(places[name])}" for name, count in counts)
    assert len(problems) <= budget, f"{len(problems)} of at most {budget}. {repair} The most frequent:\n{worst}"


def test_a_variable_is_a_noun():
    problems = []
    for path, tree in read_trees().items():
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        for function in functions:
            names = list_locals(function).items()
            problems += [(name, f"{path}:{line}") for name, line in names if is_no_noun(name.split()[-1])]
    check_budget(problems, LOCAL_BUDGET, "Call a variable by what it holds (`rows`, `answer`, `reason`).")


def test_a_public_constant_has_two_words_and_one_module():
    places = defaultdict(list)
    for path, tree in read_trees().items():
        for node in tree.body:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = [name for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)]
            for name in names:
                if name.id.isupper() and not name.id.startswith("_"):
                    places[name.id].append(f"{path}:{name.lineno}")
    vague = {name: homes for name, homes in places.items() if "_" not in name or len(homes) > 1}
    problems = [(name, ", ".join(homes)) for name, homes in vague.items()]
    check_budget(problems, CONSTANT_BUDGET, "Give a constant two words or more (`MAX_SHOWN_ROWS`) and one module.")


def test_the_object_of_a_docstring_is_a_noun():
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    problems = []
    for path, tree in read_trees().items():
        for node in [node for node in ast.walk(tree) if isinstance(node, documented)]:
            text = ast.get_docstring(node) or ""
            if CLAUSE.match(text):
                problems.append((text.splitlines()[0], f"{path}:{getattr(node, 'lineno', 1)}"))
    check_budget(problems, DOCSTRING_BUDGET, 'Name the thing ("Return the token counts", never "Return what ...").')

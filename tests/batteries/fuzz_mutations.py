"""Random changes to a valid input, as people, editors and disks make them."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import yaml

NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, -0.5, 1e-300, 1e308, float("nan"), float("inf")),
    *("", " ", "x", "nan", "null", "true", "-1", "0", "1e9", "{", "[", "a: b", "*x", "&x", "!!python/name:os.system"),
    *("\0", "é", "\U0001f600", "../../x", "/", "~", "x" * 300, "x\ny", "os.system", "subprocess.Popen", "this.x"),
    "GRPO",
    *("http://u:SECRET@h", "https://h/?token=SECRET", [], {}, [[]], [None], {"a": 1}, {"class_path": "os.system"}),
    *({"class_path": "subprocess.getoutput", "init_args": {"cmd": "touch canary"}}, [1, 2], ["x"], {"": None}),
    {"init_args": 1},
)

Place = tuple[Any, Any]
"""A container and a key or index of it."""


def walk_places(node: Any) -> Iterator[Place]:
    """Yield every place inside mappings and lists."""
    items = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    for key, value in items:
        yield node, key
        yield from walk_places(value)


def mutate_content(content: Any, rng: random.Random) -> Any:
    """Return a copy with one to three changes of values, types, keys or structure."""
    node = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not (candidates := list(walk_places(node))):
            break
        holder, key = rng.choice(candidates)
        rng.choice(
            (_replace_value, _replace_value, _replace_value, _change_value_type, _change_key, _graft_other_value)
        )(node, holder, key, rng)
    return node


def _replace_value(node: Any, holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = copy.deepcopy(rng.choice(NASTY))


def _change_value_type(node: Any, holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    holder[key] = rng.choice(([value], {"x": value}, str(value), {"class_path": value}, {"init_args": value}))


def _change_key(node: Any, holder: Any, key: Any, rng: random.Random) -> None:
    value = holder.pop(key)
    if isinstance(holder, dict) and rng.random() < 0.7:
        name = str(key)
        holder[rng.choice((f"{name}x", name[:-1], name.upper(), f"{name}.x", 1, "", "class_path", "x" * 200))] = value


def _graft_other_value(node: Any, holder: Any, key: Any, rng: random.Random) -> None:
    source, place = rng.choice(list(walk_places(node)))
    value = copy.deepcopy(source[place])
    holder[key] = value


def dump_as_yaml_or_json(node: Any) -> str:
    """Write a configuration as YAML, or as JSON where YAML cannot."""
    try:
        return yaml.safe_dump(node, sort_keys=False, allow_unicode=True)
    except (yaml.YAMLError, RecursionError):
        return json.dumps(node, default=str)


def damage_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with some of them lost, repeated or replaced."""
    place, length = rng.randrange(len(content) + 1), rng.choice((1, 2, 8, 64))
    kind = rng.randrange(6)
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + content[place + length :]
    if kind == 2:
        return content[:place] + rng.randbytes(length) + content[place + length :]
    if kind == 3:
        return content[:place] + content[place : place + length] * 2 + content[place + length :]
    if kind == 4:
        piece = rng.choice(
            (b"\0", b"\xff", b"[" * 2000, b"{", b"}", b'"', b"\n", b"NaN", b"&a [*a]", b": ", b"- ", b"9" * 5000)
        )
        return content[:place] + piece + content[place:]
    return b"" if rng.random() < 0.2 else content[place:] + content[:place]

"""Numbers of the page on the published campaigns."""

from typing import Any

from studies.numbers import STUDIES


def collect_numbers() -> dict[str, Any]:
    """Return how many published campaigns are written down, and how many of them twice."""
    names = [path.stem for path in (STUDIES / "published" / "campaigns").glob("*.yaml")]
    twice = {name.removesuffix("_as_declared") for name in names if name.endswith("_as_declared")}
    once = [name for name in names if name.endswith("_as_declared_and_executed")]
    return {"twice": len(twice), "once": len(once), "all": len(twice) + len(once)}

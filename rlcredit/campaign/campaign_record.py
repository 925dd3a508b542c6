"""The record of a campaign: its declaration and the state of its runs, in a file written atomically."""

import contextlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlcredit.base import files
from rlcredit.base.files import write_atomically
from rlcredit.campaign.config_differences import list_differences
from rlcredit.campaign.record_schema import read_campaign_record
from rlcredit.campaign.run_spec import RunSpec

FINISHED, FAILED = "finished", "failed"
LEDGER = "ledger.json"

REUSABLE = {"seeds", "conditions", "families", "baseline", "primary", "summary", "effect", "deviation", "exploratory"}
"""Keys of a declaration that change nothing in the runs that it already had."""


class CampaignRecord:
    """Record of what a campaign has declared and done, its ledger file.

    Args:
        root: Folder of the campaign.

    Attributes:
        content: ``declaration``, ``sha256``, ``threads``, ``configs`` and ``parameters`` by condition, ``code`` of
            one's own by module, ``mlflow_run``, and ``cells``, the entries of runs by name.

    """

    def __init__(self, root: Path) -> None:
        self.path = root / LEDGER
        self.content: dict[str, Any] = {"cells": {}}
        if self.path.is_file():
            self.content = read_campaign_record(self.path)

    @property
    def is_fixed(self) -> bool:
        """Whether the declaration can no longer change."""
        return "declaration" in self.content

    def fix_declaration(self, fixed: Mapping[str, Any]) -> None:
        """Write the declaration, or compare it with the one written before.

        Raises:
            ValueError: it is not what was fixed; with the differences and the repair.

        """
        before = {key: self.content[key] for key in fixed if key in self.content}
        if changed := list_differences(before, {key: fixed[key] for key in before}, ("was", "is now")):
            name = self.content["declaration"]["name"]
            lines = "\n  ".join(changed)
            reused = set(before) == {"declaration"} and {_declaration_key(line) for line in changed} <= REUSABLE
            raise ValueError(
                f"the declaration of campaign {name} has changed after {len(self.content['cells'])} of its runs "
                "have begun:\n"
                f"  {lines}\nUndo the change, or give the changed campaign another name."
                f"{self._explain_reuse() if reused else ''}"
            )
        if lacking := fixed.keys() - before.keys():  # all of it, or what an older ledger did not have
            self.write_entries(**json.loads(json.dumps({key: fixed[key] for key in lacking})))

    def _explain_reuse(self) -> str:
        """Explain how a campaign of another name reuses the finished runs."""
        root, new = self.path.parent, self.path.parent.with_name("NAME")
        return (
            f" To reuse its finished runs: cp -r {root} {new} && rm {new}/{LEDGER}, then run the changed "
            "campaign with `name: NAME`. Finished runs are then taken over from their checkpoints in seconds; "
            "its report covers all runs, including those whose results were known before."
        )

    def added_seeds(self, plain: Mapping[str, Any]) -> list[int]:
        """Return the seeds added to an exploratory declaration since it was fixed; none if anything else changed.

        Args:
            plain: Declaration as it is now.

        """
        before = self.content.get("declaration", {})
        known = before.get("seeds", [])
        alike = before.get("exploratory") and not list_differences({**before, "seeds": 0}, {**plain, "seeds": 0})
        return plain["seeds"][len(known) :] if alike and plain["seeds"][: len(known)] == known else []

    def add_seeds(self, plain: Mapping[str, Any], sha256: str) -> None:
        """Add the new seeds of an exploratory declaration, and record for reports that they were added later.

        Args:
            plain: Declaration as it is now.
            sha256: Hash that identifies the declaration.

        """
        if added := self.added_seeds(plain):
            later = [*self.content.get("seeds_added", []), *added]
            self.write_entries(declaration=dict(plain), sha256=sha256, seeds_added=later)

    def write_entries(self, **entries: Any) -> None:
        """Write entries to the ledger, and wait until they are on disk."""
        self.content.update(entries)
        write_atomically(self.path, json.dumps(self.content, indent=1))

    def update_run(self, spec: RunSpec, **entries: Any) -> None:
        """Record what has happened to a run."""
        self.content["cells"].setdefault(spec.name, {}).update(entries)
        self.write_entries()

    def run_entry(self, spec: RunSpec) -> dict[str, Any]:
        """Return the entry of a run; empty if it has never begun."""
        return self.content["cells"].get(spec.name, {})

    def is_finished(self, spec: RunSpec) -> bool:
        """Whether a run has finished, so that it must never be started again."""
        return self.run_entry(spec).get("state") == FINISHED


def _declaration_key(line: str) -> str:
    """Return the key of the declaration to which a line of differences belongs.

    Example:
        >>> _declaration_key("declaration.seeds[2]: was nothing, is now 2")
        'seeds'

    """
    return re.split(r"[.\[:]", line)[1]


@contextlib.contextmanager
def discard_refused_campaign(root: Path) -> Iterator[None]:
    """Remove the folder of a new campaign that is refused before its ledger is written."""
    existed = root.exists()
    try:
        yield
    except (ValueError, SystemExit):
        if not existed and not (root / LEDGER).exists():
            shutil.rmtree(root, ignore_errors=True)
        raise


def is_campaign_running(root: Path) -> bool:
    """Whether a process of this machine is running the campaign in a folder."""
    path = root / "lock"
    if not path.exists():
        return False
    try:
        with files.lock_file(path):
            return False
    except BlockingIOError:
        return True


@contextlib.contextmanager
def lock_campaign(root: Path) -> Iterator[None]:
    """Lock a campaign's folder against other campaign processes; the system unlocks it when this process ends.

    Raises:
        ValueError: another one is at work.

    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(files.lock_file(root / "lock"))
        except BlockingIOError:
            raise ValueError(f"another process runs the campaign in {root}. Wait for it, or end it first.") from None
        yield

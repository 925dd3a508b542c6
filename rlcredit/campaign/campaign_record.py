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

FINISHED_STATE, FAILED_STATE = "finished", "failed"
LEDGER_FILE = "ledger.json"

_FREE_KEYS = {
    "seeds",
    "conditions",
    "families",
    "baseline",
    "primary",
    "summary",
    "effect",
    "deviation",
    "exploratory",
    "rates_from",
}
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
        self.path = root / LEDGER_FILE
        self.content: dict[str, Any] = {"cells": {}}
        if self.path.is_file():
            self.content = read_campaign_record(self.path)

    @property
    def is_fixed(self) -> bool:
        """Whether the declaration can no longer change."""
        return "declaration" in self.content

    def fix_declaration(self, declared_entries: Mapping[str, Any]) -> None:
        """Write the declaration, or compare it with the one written before.

        Raises:
            ValueError: it is not what was fixed; with the differences and the repair.

        """
        entries = {key: self.content[key] for key in declared_entries if key in self.content}
        if differences := list_differences(entries, {key: declared_entries[key] for key in entries}, ("was", "is now")):
            name = self.content["declaration"]["name"]
            lines = "\n  ".join(differences)
            can_reuse_runs = (
                set(entries) == {"declaration"} and {_declaration_key(line) for line in differences} <= _FREE_KEYS
            )
            if not self.content["cells"]:
                raise ValueError(
                    f"the declaration of campaign {name} has changed since it was fixed, with no run in the ledger:\n"
                    f"  {lines}\nUndo the change, or remove {self.path} to fix it as it is now."
                )
            raise ValueError(
                f"the declaration of campaign {name} has changed after {len(self.content['cells'])} of its runs "
                "have begun:\n"
                f"  {lines}\nUndo the change, or give the changed campaign another name."
                f"{self._explain_reuse() if can_reuse_runs else ''}"
            )
        if lacking := declared_entries.keys() - entries.keys():  # all of it, or what an older ledger did not have
            self.write_entries(**json.loads(json.dumps({key: declared_entries[key] for key in lacking})))

    def refuse_changed_declaration(self, plain: Mapping[str, Any]) -> None:
        """Refuse a declaration that is not the one that was fixed, unless an exploratory one has got more seeds.

        Raises:
            ValueError: with the differences and the repair.

        """
        if self.is_fixed and not self.added_seeds(plain):
            self.fix_declaration({"declaration": plain})

    def _explain_reuse(self) -> str:
        """Explain how a campaign of another name reuses the finished runs."""
        root, new = self.path.parent, self.path.parent.with_name("NAME")
        return (
            f" To reuse its finished runs: cp -r {root} {new} && rm {new}/{LEDGER_FILE}, then run the changed "
            "campaign with `name: NAME`. Finished runs are then taken over from their checkpoints in seconds; "
            "its report covers all runs, including those whose results were known before."
        )

    def added_seeds(self, plain: Mapping[str, Any]) -> list[int]:
        """Return the seeds added to an exploratory declaration since it was fixed; none if anything else changed.

        Args:
            plain: Declaration as it is now.

        """
        declaration = self.content.get("declaration", {})
        seeds = declaration.get("seeds", [])
        can_add_seeds = declaration.get("exploratory") and not list_differences(
            {**declaration, "seeds": 0}, {**plain, "seeds": 0}
        )
        return plain["seeds"][len(seeds) :] if can_add_seeds and plain["seeds"][: len(seeds)] == seeds else []

    def add_seeds(self, plain: Mapping[str, Any], sha256: str) -> None:
        """Add the new seeds of an exploratory declaration, and record for reports that they were added later.

        Args:
            plain: Declaration as it is now.
            sha256: Hash that identifies the declaration.

        """
        if seeds := self.added_seeds(plain):
            all_later_seeds = [*self.content.get("seeds_added", []), *seeds]
            self.write_entries(declaration=dict(plain), sha256=sha256, seeds_added=all_later_seeds)

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
        return self.run_entry(spec).get("state") == FINISHED_STATE


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
    has_folder = root.exists()
    try:
        yield
    except (ValueError, SystemExit):
        if not has_folder and not (root / LEDGER_FILE).exists():
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
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.lock_file(root / "lock"))
        except BlockingIOError:
            raise ValueError(f"another process runs the campaign in {root}. Wait for it, or end it first.") from None
        yield

"""A campaign read back from its folder, as tables of pandas; its runs may still go on."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcredit.base.files import suggest_path
from rlcredit.campaign.campaign_record import CampaignRecord
from rlcredit.campaign.record_schema import restore_declaration
from rlcredit.campaign.run_spec import list_run_specs
from rlcredit.record.recorded_run import read_run

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True)
class RecordedCampaign:
    """The runs of a campaign that have begun.

    Attributes:
        runs: One row per run, indexed by ``condition`` and ``seed``: its ``state``, its ``steps`` and its ``folder``.
        metrics: Metrics, indexed by ``condition``, ``seed`` and ``step``; columns as of
            :class:`rlcredit.record.recorded_run.RecordedRun`.
        held_out: Held-out answers, one row each: ``condition``, ``seed``, ``step``, ``set``, ``question``, ``sample``
            and ``right``.

    """

    runs: "pd.DataFrame"
    metrics: "pd.DataFrame"
    held_out: "pd.DataFrame"


_RUN_KEYS: list[Any] = ["condition", "seed"]


def read_campaign(folder: Path | str) -> RecordedCampaign:
    """Read the folder of a campaign.

    Args:
        folder: Folder of the campaign, such as ``campaigns/first``.

    Raises:
        ValueError: there is no campaign in it, or none of its runs has begun.

    """
    import pandas as pd  # noqa: PLC0415  (half a second, which other uses of this package do not pay)

    root = Path(folder)
    ledger = CampaignRecord(root)
    if not ledger.is_fixed:
        name = ledger.path.name
        raise ValueError(
            f"{root} holds no campaign: there is no {name} in it. Pass a campaign's folder.{suggest_path(root)}"
        )
    specs = list_run_specs(restore_declaration(ledger.content, ledger.path), root)
    run_specs = {(spec.condition, spec.seed): spec for spec in specs if spec.run_folder.record.is_file()}
    if not run_specs:
        raise ValueError(f"{root}: no run of this campaign has begun. Run it with `rlcredit campaign`.")
    recorded_runs = {key: read_run(spec.folder) for key, spec in run_specs.items()}
    states = [ledger.run_entry(spec).get("state", "not begun") for spec in run_specs.values()]
    steps = [max(run.metrics.index.tolist(), default=0) for run in recorded_runs.values()]
    rows = list(zip(states, steps, [spec.folder.as_posix() for spec in run_specs.values()], strict=True))
    index = pd.MultiIndex.from_tuples(list(run_specs), names=_RUN_KEYS)
    answers = pd.concat({key: run.held_out for key, run in recorded_runs.items()}, names=_RUN_KEYS)
    return RecordedCampaign(
        runs=pd.DataFrame(rows, index=index, columns=["state", "steps", "folder"]),
        metrics=pd.concat({key: run.metrics for key, run in recorded_runs.items()}, names=_RUN_KEYS),
        held_out=answers.reset_index(_RUN_KEYS).reset_index(drop=True),
    )

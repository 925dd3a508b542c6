"""What is kept of a finished run."""

import datetime
from collections.abc import Mapping
from typing import Any

from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.differences import hash_config, list_run_differences
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.campaign.runs import read_run_evaluation
from rlcredit.files import file_sha256
from rlcredit.inputs import strict_yaml
from rlcredit.tracking.versions import read_code_versions


def summarise_finished_run(
    spec: RunSpec, declaration: CampaignDeclaration, declared: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Read a finished run.

    Args:
        spec: the run.
        declaration: of the campaign.
        declared: the run's configuration.
        parameters: what its objects should say.

    Returns:
        The primary metric of the last evaluation, all metrics by step, hashes of files and of the configuration,
        versions, and where the executed configuration is not the declared one.

    """
    steps = spec.run_folder.evaluated_steps()
    outcomes = {step: read_run_evaluation(spec, step) for step in steps}
    metrics = {str(step): evaluation["metrics"] for step, evaluation in outcomes.items() if evaluation}
    config = spec.run_folder.config
    return {
        "primary": metrics[str(declaration.steps)][declaration.primary],
        "metrics": metrics,
        "held_out_sha256": {str(step): file_sha256(spec.run_folder.evaluation_file(step)) for step in steps},
        "declared_sha256": hash_config(declared),
        "executed_sha256": hash_config(strict_yaml.read_yaml(config)) if config.is_file() else None,
        "differences": list_run_differences(spec.folder, declared, parameters),
        "versions": read_code_versions(),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }

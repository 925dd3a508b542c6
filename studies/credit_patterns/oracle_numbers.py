"""Numbers of the page on what the oracle says about token signals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from docs.numbers import RESULTS, require_claim
from docs.studies.oracle.tabulate_oracle import OPPOSITE, Curves, read_oracle_curves, render_means_table

from rlcredit.pages.tables import Table

SCORES = {
    "surprisal": "surprisal",
    "entropy": "true entropy",
    "predictive_variance": "p(1-p)",
    "planning": "planning mask, 18 phrases",
    "GTPO": "advantage after GTPO 0.1",
    "HICRA": "advantage after HICRA 0.2",
    "GRPO": "advantage of GRPO",
    "random": "chance",
}
LEDGERS = {"GRPO": "GRPO", "HICRA": "HICRA 0.2", "GTPO": "GTPO 0.1 (on HICRA)"}
QUADRANTS = [
    f"QuadrantStats/{name}_{part}" for part in ("tokens", "credit", "gradient") for name in ("PHR", "PLR", "NHR", "NLR")
]
DIAGNOSTICS = [
    *QUADRANTS,
    "QuadrantStats/information",
    "QuadrantStats/information_shuffled",
    "ZeroVariance/fraction",
    "ZeroVariance/all_right",
    "ZeroVariance/all_wrong",
    "EntropyCollapse/remaining",
    "EntropyCollapse/certain_fraction",
    "EntropyCollapse/covariance",
]
MISALIGNED = "credit/PolarityMisalignment/misaligned_fraction"


def list_means(curves: Curves, quantity: str) -> list[float]:
    """Return the means over seeds of a quantity, step by step."""
    return [float(np.mean(values)) for values in curves[quantity].values()]


def render_table(first: str, curves: Curves, rows: Mapping[str, Sequence[str]]) -> str:
    """Return a Markdown table with a column for every step at which the oracle was asked.

    Args:
        first: Title of the first column.
        curves: Values of the oracle, for the steps.
        rows: Cells by the title of the row.

    """
    start, *later = curves["value"]
    columns = [first, f"step {start}", *map(str, later)]
    return Table(columns, [[title, *cells] for title, cells in rows.items()]).to_markdown()


def render_general_table(curves: Curves) -> str:
    """Return the table of prompts, forks and the size of true credit."""
    squares, errors = (list_means(curves, name) for name in ("credit_square", "error_square"))
    rows = {
        "mean value of the prompts": [f"{value:.2f}" for value in list_means(curves, "value")],
        "forks, of all tokens": [f"{100 * value:.1f} %" for value in list_means(curves, "fork_fraction")],
        "mean $A^{*2}$ (mean square of the standard error)": [
            f"{square:.4f} ({error:.{4 if error >= 0.00005 else 5}f})"
            for square, error in zip(squares, errors, strict=True)
        ],
    }
    return render_table("", curves, rows)


def render_score_table(curves: Curves) -> str:
    """Return the table of how well every score finds the forks."""
    rows = {}
    for name, title in SCORES.items():
        pairs = zip(list_means(curves, f"{name}_auc"), list_means(curves, f"{name}_mass_20"), strict=True)
        rows[title] = [f"{area:.2f} / {share:.2f}" for area, share in pairs]
    return render_table("score", curves, rows)


def render_ledger_table(curves: Curves) -> str:
    """Return the table of how far advantages agree with true credit; nothing differs inside completions under GRPO."""
    rows = {}
    for name, title in LEDGERS.items():
        pairs = zip(list_means(curves, f"{name}_cosine"), list_means(curves, f"{name}_cosine_within"), strict=True)
        rows[title] = [f"{whole:.2f} / {within:.2f}" if within else f"{whole:.2f} / 0" for whole, within in pairs]
    return render_table("ledger", curves, rows)


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the oracle on the embedded policy."""
    curves, ep_grpo = (read_oracle_curves(RESULTS / "oracle.csv", name) for name in ("oracle", "oracle_ep_grpo"))
    require_claim({len(values) for values in curves["value"].values()} == {3}, "the oracle was asked in three runs")
    information, entropy = (list_means(curves, f"verdict_{name}") for name in ("information", "entropy"))
    ratios = [whole / part for part, whole in zip(information, entropy, strict=True)]
    require_claim(4.5 < ratios[0] < 5.5, "tokens say a fifth of their entropy before training")
    require_claim(18 < ratios[-1] < 22, "tokens say a twentieth of their entropy at the end")
    opposite = [f"{ledger}_{kind}" for ledger in ("GRPO", "OutcomeAnchor") for kind in OPPOSITE]
    said = [f"verdict_{kind}{part}" for part in ("", "_4_of_4", "_3_of_4") for kind in ("information", "entropy")]
    ranks = [list_means(curves, f"{name}_rank") for name in ("surprisal", "entropy")]
    decoded = [tokens for values in curves["decoded_tokens"].values() for tokens in values]
    wrong = list_means(curves, "GRPO_opposite")
    return {
        "general_table": render_general_table(curves),
        "score_table": render_score_table(curves),
        "ledger_table": render_ledger_table(curves),
        "sign_table": render_means_table(curves, opposite[:3], 2),
        "anchor_table": render_means_table(ep_grpo, [*opposite, MISALIGNED], 2),
        "verdict_table": render_means_table(curves, said, 4),
        "diagnostics_table": render_means_table(ep_grpo, [f"credit/{name}" for name in DIAGNOSTICS], 3),
        "areas": [area for name in ("surprisal", "entropy") for area in list_means(curves, f"{name}_auc")],
        "flat_cosines": list_means(curves, "GRPO_cosine"),
        "decoded_thousands": [tokens / 1000 for tokens in decoded],
        "forks_a_wrong_sign": [round(1 / min(wrong)), round(1 / max(wrong))],
        "misaligned": float(np.mean(list_means(ep_grpo, MISALIGNED)[1:])),
        "opposite_percent": [100 * share for share in list_means(ep_grpo, "GRPO_opposite")[1:]],
        "flat_opposite_percent": [100 * share for share in wrong],
        "high_entropy_gradient": min(
            positive + negative
            for positive, negative in zip(
                *(list_means(ep_grpo, f"credit/QuadrantStats/{name}_gradient") for name in ("PHR", "NHR")), strict=True
            )
        ),
        "information": information,
        "entropy": entropy,
        "first_rank": float(np.mean([each[0] for each in ranks])),
        "last_rank": float(np.mean([each[-1] for each in ranks])),
    }

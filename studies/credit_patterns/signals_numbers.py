"""Numbers of the page on what the signals of token credit are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from callbacks.tokens.gtpo import gtpo_weights
from rlcredit.cards.ranking import SHIPPED_CARDS
from rlcredit.formulas.uncertainty import predictive_variance, surprisal
from rlcredit.pages.tables import Table
from studies.credit_patterns.measure_signals import POLICIES, SPEAKING
from studies.csv_rows import read_csv_rows
from studies.leaderboard.leaderboard_numbers import collect_findings
from studies.numbers import (
    Estimate,
    Rows,
    estimate_area_lead,
    estimate_lead,
    find_results,
    format_estimate,
    format_fixed,
    read_results,
    require_claim,
)
from studies.papers.replication_numbers import count_area_conclusions
from studies.papers.tabulate_areas import conclude_areas

UNPLANTED = (*SPEAKING, "delayed", "backward")
"""Policies that are uncertain where they decide."""
MASKS = {
    "GRPO": "flat credit",
    "GTPO": "GTPO, no pooling",
    "SEPA": "SEPA, true mask",
    "half missed": "half of the phrases missed",
    "half wrong": "as many wrong marks, by lot",
    "half wrong, surprising": "as many wrong marks, the most surprising",
}
PAIR = ("tiny_study", "maxrl_sepa_predictive_variance", "c8_maxrl_sepa")


@dataclass(frozen=True)
class Measured:
    """What ``measure_signals.py`` wrote."""

    rows: Rows

    def find(self, policy: str, part: str, quantity: str, subject: str = "", tokens: str = "") -> Estimate:
        """Return the only estimate of a quantity."""
        keys = {"policy": policy, "part": part, "quantity": quantity, "subject": subject, "tokens": tokens}
        (row,) = [row for row in self.rows if keys.items() <= row.items()]
        return Estimate(*(float(row[name]) for name in ("estimate", "low", "high")))

    def percent(self, *keys: str) -> Estimate:
        """Return an estimate of a share in percent."""
        share = self.find(*keys)
        return Estimate(100 * share.mean, 100 * share.low, 100 * share.high)


def render_policy_table(heads: Sequence[str], policies: Sequence[str], cells: Callable[[str], Sequence[str]]) -> str:
    """Return a table with one row per policy."""
    return Table(["policy", *heads], [[policy, *cells(policy)] for policy in policies]).to_markdown()


def render_card_table() -> str:
    """Return what the cards say of GTPO with and without pooling."""
    rows = read_csv_rows(SHIPPED_CARDS)
    areas, cosines = (collect_findings(rows, name) for name in ("fork_area", "cosine_within"))
    return render_policy_table(
        ["area, GTPO", "area, SEPA", "agreement, GTPO", "agreement, SEPA"],
        SPEAKING[:2],
        lambda policy: [format_estimate(of[name][policy], 2) for of in (areas, cosines) for name in ("GTPO", "SEPA")],
    )


def render_pooled_table(measured: Measured) -> str:
    """Return how pooling changes what credit finds, over all tokens and over execution tokens."""

    def cells(policy: str) -> list[str]:
        area = [
            format_fixed(measured.find(policy, "pooled credit", "area", name, "all"), 2) for name in ("GTPO", "SEPA")
        ]
        beyond = [
            measured.find(policy, "pooled credit", "area_beyond_GTPO", "SEPA", "all"),
            measured.find(policy, "pooled credit", "area_beyond_GTPO", "SEPA", "execution"),
            measured.find(policy, "pooled credit", "cosine_within_beyond_GTPO", "SEPA", "all"),
        ]
        return [*area, *(format_estimate(each, 2, sign=True) for each in beyond)]

    heads = ["area, GTPO", "area, SEPA", "difference", "among execution tokens", "difference of agreement"]
    return render_policy_table(heads, SPEAKING, cells)


def render_order_table(measured: Measured) -> str:
    """Return how far p(1-p) and surprisal order tokens alike."""

    def cells(policy: str) -> list[str]:
        shares = ("below_half", "opposite_pairs", "opposite_of_unlikely")
        return [
            *(format_estimate(measured.percent(policy, "order", name), 1, "%") for name in shares),
            format_fixed(measured.find(policy, "order", "rank_correlation"), 3),
            format_estimate(measured.find(policy, "order", "weight_correlation"), 2),
        ]

    heads = ["tokens with p < 1/2", "pairs ordered oppositely", "of pairs with such a token"]
    return render_policy_table([*heads, "rank correlation", "correlation of GTPO's weights"], POLICIES, cells)


def render_example_table() -> str:
    """Return three tokens under both signals, and the weights that GTPO makes of them at beta 1."""
    p = torch.tensor([[0.9, 0.5, 0.1]])
    signals = {"$-\\log p$": surprisal(p.log()), "$p(1-p)$": predictive_variance(p.log())}
    mask = torch.ones_like(p, dtype=torch.bool)
    rows = []
    for name, signal in signals.items():
        rows.append([name, *(f"{value:.2f}" for value in signal[0].tolist())])
        rows.append([f"weight by {name}", *(f"{value:.2f}" for value in gtpo_weights(signal, mask, 1.0)[0].tolist())])
    return Table(["", *(f"p = {value:.1f}" for value in p[0].tolist())], rows).to_markdown()


def render_variance_table(measured: Measured) -> str:
    """Return how the variance of surprisal splits into entropy and noise."""
    rows = []
    for policy, tokens in [*((policy, "all") for policy in POLICIES), *((policy, "execution") for policy in SPEAKING)]:
        found = [measured.find(policy, "variance", name, "", tokens) for name in ("variance", "correlation")]
        shares = [
            measured.percent(policy, "variance", name, "", tokens) for name in ("entropy_share", "noise_share", "rest")
        ]
        rows.append(
            [
                policy if tokens == "all" else f"{policy}, execution tokens",
                format_fixed(found[0], 3),
                *(format_estimate(share, 1, "%") for share in shares),
                format_estimate(found[1], 2),
            ]
        )
    heads = ["tokens", "variance", "entropy", "noise of sampling", "rest", "correlation with entropy"]
    return Table(heads, rows).to_markdown()


def render_pooling_table(measured: Measured) -> str:
    """Return what SEPA at lambda 1 does to the variance of surprisal."""

    def cells(policy: str) -> list[str]:
        marked = [measured.percent(policy, "pooling", name, "marked") for name in ("coverage", "planning_completions")]
        means = [measured.find(policy, "pooling", "mean", name) for name in ("planning", "execution")]
        variances = [measured.find(policy, "pooling", name, "execution") for name in ("before", "after")]
        planning = [measured.find(policy, "pooling", name, "planning") for name in ("before", "after")]
        left = measured.percent(policy, "pooling", "left", "execution")
        taken = Estimate(100 - left.mean, 100 - left.high, 100 - left.low)
        return [
            *(format_fixed(each, 1) + " %" for each in marked),
            " / ".join(format_fixed(each, 2) for each in means),
            " / ".join(format_fixed(each, 3) for each in variances),
            format_estimate(taken, 1, "%"),
            " / ".join(format_fixed(each, 3) for each in planning),
        ]

    heads = [
        "tokens marked",
        "completions",
        "mean, planning / execution",
        "execution variance, before / after",
        "taken",
    ]
    return render_policy_table([*heads, "planning variance, before / after"], SPEAKING, cells)


def render_pivot_table(measured: Measured) -> str:
    """Return how well decision pivots find the forks."""

    def cells(policy: str) -> list[str]:
        names = ("surprisal", "entropy", "pivot score")
        shares = ("forks", "pivots", "forks_that_are_pivots", "pivots_that_are_forks")
        return [
            *(format_estimate(measured.find(policy, "pivots", "area", name), 2) for name in names),
            format_estimate(measured.find(policy, "pivots", "area_beyond_entropy", "pivot score"), 3, sign=True),
            *(format_fixed(measured.percent(policy, "pivots", name, "pivot"), 1) + " %" for name in shares),
        ]

    heads = ["surprisal", "entropy", "pivots' score", "beyond entropy", "forks", "pivots", "forks that are pivots"]
    return render_policy_table([*heads, "pivots that are forks"], POLICIES, cells)


def render_mask_table(measured: Measured, policy: str) -> str:
    """Return what worse masks do to SEPA on one policy."""
    rows = []
    for name, title in MASKS.items():
        beyond = measured.find(policy, "masks", "agreement_beyond_SEPA", name)
        truth = measured.find(policy, "pooled credit", "cosine_within_beyond_GTPO", name, "all")
        rows.append(
            [
                title,
                format_fixed(measured.find(policy, "masks", "agreement", name), 2),
                "" if name == "SEPA" else format_estimate(beyond, 2, sign=True),
                "" if name == "GRPO" else format_estimate(measured.find(policy, "masks", "direction", name), 3),
                format_fixed(measured.find(policy, "pooled credit", "cosine_within", name, "all"), 2),
                "" if name == "GTPO" else format_estimate(truth, 2, sign=True),
            ]
        )
    heads = ["", "agreement of batches", "beyond the true mask", "direction against flat", "agreement with true credit"]
    return Table([*heads, "beyond GTPO"], rows).to_markdown()


def render_area_table() -> str:
    """Return how many comparisons ends and areas decide."""
    rows = []
    for study in ("tiny_study", "tiny_study_2"):
        found = count_area_conclusions(study)
        verdicts = [row["verdict"] for row in read_results(f"{study}/comparisons")]
        ends = [sum(verdict.startswith(word) for verdict in verdicts) for word in ("worse", "better", "equivalent")]
        rows.append([study, found["compared"], *ends, found["slower"], found["faster"], found["undecided_at_the_end"]])
    heads = ["campaign", "comparisons", "worse at the end", "better", "equivalent", "slower by area", "faster"]
    return Table([*heads, "decided by area alone"], [[str(cell) for cell in row] for row in rows]).to_markdown()


def list_shares(measured: Measured, name: str) -> list[float]:
    """Return a share of the variance of surprisal over all tokens in percent, on all policies but decoy."""
    return [measured.percent(policy, "variance", name, "", "all").mean for policy in UNPLANTED]


def collect_training() -> dict[str, Any]:
    """Return how SEPA on p(1-p) trains beside SEPA on surprisal."""
    study, condition, baseline = PAIR
    return {
        "area": estimate_area_lead(study, condition, baseline),
        "end": estimate_lead(study, condition, baseline),
        "p": conclude_areas(find_results(study))["signals", condition].p,
    }


def collect_pooled_credit(measured: Measured) -> dict[str, list[float]]:
    """Return what pooling takes from areas on every policy, and how much lies on execution tokens, in percent.

    Raises:
        ValueError: the page says more than the results.

    """
    part = "pooled credit"
    losses = {
        tokens: [-measured.find(policy, part, "area_beyond_GTPO", "SEPA", tokens) for policy in SPEAKING]
        for tokens in ("all", "execution")
    }
    for tokens, found in losses.items():
        require_claim(all(each.low > 0 for each in found), f"pooling lowers the area for forks over {tokens} tokens")
    for policy in SPEAKING:
        agreement = measured.find(policy, part, "cosine_within_beyond_GTPO", "SEPA", "all")
        require_claim(agreement.low < 0 < agreement.high, f"pooling is not seen to change agreement on {policy}")
    shares = {
        name: [measured.percent(policy, part, name, "true credit", "execution").mean for policy in SPEAKING]
        for name in ("execution_forks", "execution_credit")
    }
    return {**{tokens: [each.mean for each in found] for tokens, found in losses.items()}, **shares}


def collect_masks(measured: Measured, policy: str) -> dict[str, Any]:
    """Return what worse masks cost of the agreement of batches, and what pooling gains of it over GTPO.

    Raises:
        ValueError: the page says more than the results.

    """
    names = {"missed": "half missed", "lot": "half wrong", "surprising": "half wrong, surprising", "gain": "GTPO"}
    found = {key: -measured.find(policy, "masks", "agreement_beyond_SEPA", name) for key, name in names.items()}
    truth = -measured.find(policy, "pooled credit", "cosine_within_beyond_GTPO", names["missed"], "all")
    require_claim(truth.low > 0, "SEPA with half of the phrases agrees less with true credit than GTPO")
    lot = measured.find(policy, "pooled credit", "cosine_within_beyond_GTPO", names["lot"], "all")
    require_claim(lot.low < 0 < lot.high, "wrong marks by lot are not seen to cost agreement with true credit")
    whole = measured.find(policy, "masks", "agreement_beyond_SEPA", "GTPO").mean + found["surprising"].mean
    require_claim(abs(whole) < 0.01, "wrong marks on the most surprising tokens cost what pooling gains")
    return {**found, "missed_truth": truth}


def check_claims(measured: Measured) -> None:
    """Hold the sentences without numbers to the results."""
    for policy in POLICIES:
        rest = measured.find(policy, "variance", "rest", "", "all")
        require_claim(rest.low < 0 < rest.high, f"nothing is left of the variance on {policy}")
    for policy in SPEAKING:
        require_claim(
            measured.find(policy, "variance", "rest", "", "execution").high < 0, f"something is left on {policy}"
        )
    noise = measured.percent("decoy", "variance", "noise_share", "", "all")
    require_claim(noise.high < 0.1, "surprisal is entropy on decoy")
    for score in ("surprisal", "entropy", "pivot score"):
        area = measured.find("decoy", "pivots", "area", score).mean
        require_claim(abs(area - 0.5) < 0.03, f"the area of {score} is that of chance on decoy")


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the signals."""
    measured = Measured(read_results("signals"))
    check_claims(measured)
    return {
        "card_table": render_card_table(),
        "pooled_table": render_pooled_table(measured),
        "order_table": render_order_table(measured),
        "example_table": render_example_table(),
        "variance_table": render_variance_table(measured),
        "pooling_table": render_pooling_table(measured),
        "pivot_table": render_pivot_table(measured),
        "mask_table": render_mask_table(measured, "aligned_1"),
        "area_table": render_area_table(),
        "training": collect_training(),
        "noise_shares": list_shares(measured, "noise_share"),
        "correlations": [measured.find(each, "variance", "correlation", "", "all").mean for each in UNPLANTED],
        "weight_correlations": [measured.find(each, "order", "weight_correlation").mean for each in POLICIES],
        "taken": [100 - measured.percent(each, "pooling", "left", "execution").mean for each in SPEAKING],
        "planning_ratio": [
            measured.find(each, "pooling", "mean", "planning").mean
            / measured.find(each, "pooling", "mean", "execution").mean
            for each in SPEAKING
        ],
        "pooled": collect_pooled_credit(measured),
        "masks": collect_masks(measured, "aligned_1"),
        "missed_elsewhere": {
            each: -measured.find(each, "pooled credit", "cosine_within_beyond_GTPO", "half missed", "all")
            for each in ("aligned", "long_chains")
        },
        "pivot_beyond": max(
            abs(measured.find(each, "pivots", "area_beyond_entropy", "pivot score").mean) for each in POLICIES
        ),
        "pivots_found": [measured.percent(each, "pivots", "forks_that_are_pivots", "pivot").mean for each in UNPLANTED],
        "decoy_found": measured.percent("decoy", "pivots", "forks_that_are_pivots", "pivot"),
        "pivots_right": [measured.percent(each, "pivots", "pivots_that_are_forks", "pivot").mean for each in UNPLANTED],
        "by_area": count_area_conclusions("tiny_study"),
    }

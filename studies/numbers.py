"""Numbers of the studies: what a folder of results says, and how a page writes it.

Every topic of a study has a ``studies/PAGE/TOPIC_numbers.py`` whose ``collect_numbers`` returns the numbers that pages
state. Numbers are returned as numbers, estimates as an `Estimate`, tables as text; the template formats them with
the filters below, and so decides about digits, signs and units.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from rlcredit.statistics.collapse import collapsed_run_mask
from rlcredit.statistics.paired_comparison import sign_flip_paired_test
from rlcredit.statistics.run_aggregates import learning_curve_area
from studies import csv_rows

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"

PASS = "val/pass_at_1"
ENTROPY = "val/entropy"
LENGTH = "val/completion_length"

STEPS = (25, 50, 75, 100)
"""Steps after which the runs of headroom and headline were evaluated."""

NOT_RUN = "*Not run.*"
"""What a page says in place of a table whose results are missing."""

WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]

Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval of 95 %."""

    mean: float
    low: float
    high: float

    def __neg__(self) -> "Estimate":
        """Return the estimate of the opposite difference.

        Example:
            >>> -Estimate(5.0, 3.0, 7.0)
            Estimate(mean=-5.0, low=-7.0, high=-3.0)

        """
        return Estimate(-self.mean, -self.high, -self.low)


def require_claim(holds: Any, claim: str) -> None:
    """Refuse to render a sentence that the results no longer carry.

    Raises:
        ValueError: the claim does not hold.

    """
    if not holds:
        raise ValueError(f"The results no longer say that {claim}. Change the page that says so.")


def _find_single(pattern: str) -> Path:
    paths = sorted(STUDIES.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"studies/{pattern}: there is none. Correct the name.")
    if len(paths) > 1:
        places = ", ".join(str(path.relative_to(ROOT)) for path in paths)
        raise ValueError(f"studies/{pattern}: several studies have one: {places}. Rename all but one.")
    return paths[0]


def find_results(name: str) -> Path:
    """Return the file or folder of results of some name, whichever study it belongs to.

    Raises:
        FileNotFoundError: no study has results of that name.
        ValueError: several studies have.

    """
    return _find_single(f"*/results/{name}")


def find_campaign(name: str) -> Path:
    """Return the file of a campaign, whichever study it belongs to.

    Raises:
        FileNotFoundError: no study has a campaign of that name.
        ValueError: several studies have.

    """
    return _find_single(f"*/campaigns/{name}.yaml")


def has_results(name: str) -> bool:
    """Whether a study has a CSV file of results, which is named without its ending."""
    return any(STUDIES.glob(f"*/results/{name}.csv"))


def read_results(name: str) -> Rows:
    """Return the rows of a CSV file of results, which is named without its ending."""
    return csv_rows.read_csv_rows(find_results(f"{name}.csv"))


def render_if_run(name: str, render: Callable[[], str]) -> str:
    """Return a table of some results, or that they are missing."""
    return render() if has_results(name) else NOT_RUN


def measure_run_areas(rows: Iterable[Mapping[str, str]], place: str = "step") -> dict[tuple[str, int], float]:
    """Return the area under pass@1 of every run, its mean height, by condition and seed.

    Args:
        rows: Rows of the file of a campaign's runs.
        place: Column that says where on the run an evaluation lies: ``step``, or ``budget`` for shares of tokens.

    Example:
        >>> rows = [{"condition": "a", "seed": "1", "step": s, "val/pass_at_1": p} for s, p in (("0", "0"), ("9", "1"))]
        >>> measure_run_areas(rows)
        {('a', 1): 0.5}

    """
    curves: dict[tuple[str, int], dict[int, float]] = {}
    for row in rows:
        curves.setdefault((row["condition"], int(row["seed"])), {})[int(row[place])] = float(row[PASS])
    return {run: float(learning_curve_area(*zip(*sorted(curve.items()), strict=True))) for run, curve in curves.items()}


def read_held_out(study: str, condition: str, metric: str = PASS, step: int = 100) -> np.ndarray:
    """Return a held-out metric of every run of a condition, by ascending seed.

    Raises:
        ValueError: no run of the condition was evaluated after so many steps.

    """
    rows = [row for row in read_results(f"{study}/runs") if (row["condition"], int(row["step"])) == (condition, step)]
    if not rows:
        raise ValueError(f"{study} has no evaluation of {condition} after {step} steps.")
    return np.array([float(row[metric]) for row in sorted(rows, key=lambda row: int(row["seed"]))])


def pair_differences(
    study: str, condition: str, baseline: str = "c1_grpo", metric: str = PASS, step: int = 100
) -> np.ndarray:
    """Return paired differences from a baseline, of pass@1 in percentage points."""
    own = read_held_out(study, condition, metric, step)
    base = read_held_out(study, baseline, metric, step)
    return (own - base) * (100 if metric == PASS else 1)


def list_leads_by_step(study: str, condition: str, baseline: str = "c1_grpo") -> list[float]:
    """Return the mean lead over a baseline at every evaluation after training began, in points."""
    return [float(pair_differences(study, condition, baseline, step=step).mean()) for step in STEPS]


def pair_area_differences(study: str, condition: str, baseline: str = "c1_grpo") -> np.ndarray:
    """Return paired differences of the area under pass@1, in percentage points."""
    steps = sorted({int(row["step"]) for row in read_results(f"{study}/runs")})
    differences = [pair_differences(study, condition, baseline, step=step) for step in steps]
    return np.trapezoid(differences, steps, axis=0) / steps[-1]


def student_estimate(values: np.ndarray) -> Estimate:
    """Mean of paired differences with Student's interval."""
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return Estimate(float(values.mean()), float(low), float(high))


def sign_flip_estimate(values: np.ndarray) -> Estimate:
    """Mean of paired differences some of which come from collapsed runs, with the wider of two intervals."""
    test = sign_flip_paired_test(values).test
    return Estimate(test.difference, test.interval.low, test.interval.high)


def find_last_step(study: str) -> int:
    """Return the last step at which the runs of a study were evaluated."""
    return max(int(row["step"]) for row in read_results(f"{study}/runs"))


def has_collapses(study: str, conditions: Iterable[str]) -> bool:
    """Say whether a run of some conditions ends more than 10 points below the median of its condition."""
    step = find_last_step(study)
    return any(collapsed_run_mask(read_held_out(study, condition, step=step)).any() for condition in conditions)


def estimate_lead(
    study: str, condition: str, baseline: str = "c1_grpo", metric: str = PASS, step: int = 100
) -> Estimate:
    """Return the mean lead of a condition over a baseline, of pass@1 in percentage points.

    At the end of the runs the interval of pass@1 is as wide as the report's: where runs of either side collapsed, it
    reaches at each end at least as far as the interval of the sign-flip test.
    """
    differences = pair_differences(study, condition, baseline, metric, step)
    at_the_end = metric == PASS and step == find_last_step(study)
    fallen = at_the_end and has_collapses(study, (condition, baseline))
    return sign_flip_estimate(differences) if fallen else student_estimate(differences)


def estimate_area_lead(study: str, condition: str, baseline: str = "c1_grpo") -> Estimate:
    """Return the mean lead of a condition over a baseline over the whole run, in percentage points."""
    differences = pair_area_differences(study, condition, baseline)
    fallen = has_collapses(study, (condition, baseline))
    return sign_flip_estimate(differences) if fallen else student_estimate(differences)


def count_collapses(study: str, condition: str) -> tuple[int, int]:
    """Return how many runs of a condition collapsed, and of how many."""
    (row,) = [row for row in read_results(f"{study}/conditions") if row["condition"] == condition]
    return int(row["collapsed"]), int(row["runs"])


def name_conclusion(verdict: str) -> str:
    """Return the first word of a verdict: better, worse, equivalent, undecided or open.

    Example:
        >>> name_conclusion("undecided: a new campaign needs 50 seeds"), name_conclusion("equivalent within 2 pp")
        ('undecided', 'equivalent')

    """
    return verdict.split(" ")[0].rstrip(":")


def count_conclusions(study: str) -> Counter[str]:
    """Return how many comparisons of a study end better, worse, equivalent, undecided or open."""
    return Counter(name_conclusion(row["verdict"]) for row in read_results(f"{study}/comparisons"))


def list_conclusions(study: str, conclusion: str) -> list[str]:
    """Return the conditions of a study that end with a conclusion, such as worse."""
    return [row["condition"] for row in read_results(f"{study}/comparisons") if row["verdict"].startswith(conclusion)]


def parse_comparison(row: Mapping[str, str]) -> Estimate:
    """Return the declared difference of a comparison of proportions, in points."""
    return Estimate(*(100 * float(row[name]) for name in ("difference", "low", "high")))


def list_deficits(study: str, conditions: Iterable[str], baseline: str = "c1_grpo") -> list[float]:
    """Return by how many points every condition ends behind the baseline."""
    return [float(pair_differences(study, baseline, condition).mean()) for condition in conditions]


def parse_estimate(text: str) -> Estimate:
    """Read an estimate that another part of the project wrote.

    Example:
        >>> parse_estimate("+1.9 (+1.4 to +2.4)")
        Estimate(mean=1.9, low=1.4, high=2.4)

    """
    mean, _, ends = text.rstrip(")").partition(" (")
    low, high = ends.split(" to ")
    return Estimate(float(mean), float(low), float(high))


def format_fixed(value: float | Estimate, digits: int = 1, sign: bool = False) -> str:
    """Write a number, or the mean of an estimate.

    Example:
        >>> format_fixed(Estimate(5.11, 3.05, 7.18), sign=True)
        '+5.1'

    """
    number = value.mean if isinstance(value, Estimate) else value
    return f"{number:{'+' if sign else ''},.{digits}f}"


def format_interval(estimate: Estimate, digits: int = 1, sign: bool = False) -> str:
    """Write the ends of an interval.

    Example:
        >>> format_interval(Estimate(5.11, 3.05, 7.18))
        '3.0 to 7.2'

    """
    return " to ".join(format_fixed(end, digits, sign) for end in (estimate.low, estimate.high))


def format_estimate(estimate: Estimate, digits: int = 1, unit: str = "", sign: bool = False) -> str:
    """Write an estimate with its unit and its interval.

    Example:
        >>> format_estimate(Estimate(5.11, 3.05, 7.18), unit="pp")
        '5.1 pp (3.0 to 7.2)'

    """
    mean = " ".join(part for part in (format_fixed(estimate, digits, sign), unit) if part)
    return f"{mean} ({format_interval(estimate, digits, sign)})"


def format_span(values: Sequence[float], digits: int = 1) -> str:
    """Write the smallest and the largest of some numbers.

    Example:
        >>> format_span([10.2, 4.6, 7.0])
        '4.6 to 10.2'

    """
    return f"{format_fixed(min(values), digits)} to {format_fixed(max(values), digits)}"


def format_list(values: Sequence[float | Estimate], digits: int = 1, sign: bool = False) -> str:
    """Write some numbers, or the means of estimates, one after the other.

    Example:
        >>> format_list([4.58, 2.23, 1.75])
        '4.6, 2.2 and 1.8'

    """
    *first, last = (format_fixed(value, digits, sign) for value in values)
    return f"{', '.join(first)} and {last}" if first else last


def format_percent(share: float, digits: int = 0) -> str:
    """Write a share in percent.

    Example:
        >>> format_percent(0.268)
        '27 %'

    """
    return f"{share:.{digits}%}".replace("%", " %")


def spell_number(number: int) -> str:
    """Write a whole number up to twelve as a word.

    Example:
        >>> spell_number(2)
        'two'

    """
    return WORDS[number] if number < len(WORDS) else f"{number:,}"


FILTERS: dict[str, Callable[..., str]] = {
    "fixed": format_fixed,
    "interval": format_interval,
    "estimate": format_estimate,
    "span": format_span,
    "listed": format_list,
    "percent": format_percent,
    "spell": spell_number,
}
"""Filters of the templates."""

"""The record of the studies: their campaigns, conditions, results and pages, and the code that renders the pages."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

sys.path += [str(ROOT / "scripts"), str(ROOT / "tests" / "batteries")]

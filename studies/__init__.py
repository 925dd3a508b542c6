"""The record of the studies: their campaigns, conditions, results and pages, and what renders the pages."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "scripts")]

"""The documentation: templates of its pages, and what renders them from the results of the studies."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

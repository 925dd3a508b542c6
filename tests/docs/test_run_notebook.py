"""The notebook runs, and holds the pictures of its last execution."""

import json
import os
import subprocess
import sys

import pytest

from docs.run_notebook import NOTEBOOK, execute_notebook
from tests.small_runs import ROOT


def list_outputs(cells):
    return [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]


def test_the_notebook_holds_what_its_cells_show():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    outputs = list_outputs(cells)
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("text/html") >= 4  # two rollouts, the heat-map, a table
    assert "image/png" in kinds


@pytest.mark.slow
def test_the_cells_run_as_a_script(tmp_path):
    """Where there is no kernel of Jupyter, Python runs the cells in their order."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    script = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (tmp_path / "cells.py").write_text(f"import matplotlib\nmatplotlib.use('Agg')\n{script}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "cells.py"],
        **{"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300},
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1].removeprefix("probability of the right answer: ")) > 0.9


@pytest.mark.slow
def test_the_notebook_runs_in_jupyter(tmp_path):
    pytest.importorskip("nbclient", reason="nbclient and ipykernel come with the extra `docs`")
    pytest.importorskip("ipykernel")
    cells = execute_notebook(NOTEBOOK, tmp_path).cells
    assert any("image/png" in output.get("data", {}) for output in list_outputs(cells))

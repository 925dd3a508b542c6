"""Execute the notebook and keep what its cells show: ``python -m docs.run_notebook``; needs nbclient and ipykernel."""

import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")
SECONDS = 600
"""Most seconds that a cell may take."""


def execute_notebook(path: Path, folder: Path) -> Any:
    """Return a notebook with the outputs of its cells, executed in a folder.

    Args:
        path: Path of the notebook; it is left as it is.
        folder: Working directory of the cells.

    """
    import nbformat  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    from nbclient import NotebookClient  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources, record_timing=False).execute()
    return notebook


def main() -> None:
    """Execute the notebook and write it back."""
    import nbformat  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    with tempfile.TemporaryDirectory() as folder:
        notebook = execute_notebook(NOTEBOOK, Path(folder))
    for cell in notebook.cells:
        cell.pop("id", None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook.nbformat_minor = 4
    NOTEBOOK.write_text(nbformat.writes(notebook), encoding="utf-8")


if __name__ == "__main__":
    main()

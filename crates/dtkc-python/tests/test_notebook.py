"""The notebook of the documentation runs from top to bottom, and its progress and results are there."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[3] / "docs" / "python.ipynb"


def test_the_notebook_runs(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = {cell.source.splitlines()[0]: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    fitted = next(outputs for source, outputs in outputs.items() if source.startswith("groups = dtkc.DTKC"))
    shown = [output["data"].get("text/plain", "") for output in fitted if "data" in output]
    assert any("restart 1/1" in text and "epoch" in text for text in shown), shown
    scores = next(outputs for source, outputs in outputs.items() if source.startswith("scores ="))
    found = eval(scores[0]["data"]["text/plain"])  # noqa: S307 - a dict that the cell above has printed
    assert found["counted"] == 1797 and found["acc"] > 0.7, found

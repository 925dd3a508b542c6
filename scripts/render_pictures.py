"""Make pictures of the documentation anew: run what a picture shows, and photograph the page with Chromium.

python scripts/render_pictures.py tutorial_heatmap sample
python scripts/render_pictures.py report --work FOLDER

Without names, all are made. Commands run in a temporary folder, or in `--work`: the report is made in the folder where
its campaign has run. `heatmap` and `mlflow` are kept as they are: what they show takes a service, or a long run.
"""

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"

LARGEST = 200_000
"""Bytes from which on a picture is reduced to 256 colours."""

QUESTION = "State the final answer to the following arithmetic problem: 4 + 3 - 2 + 8 ="


class Picture(NamedTuple):
    """A page of the product, and how it is made.

    Attributes:
        commands: Words of the commands behind ``rlcredit``, in order.
        page: Page that they leave, from the folder in which they run.
        width: Columns of the window.
        height: Rows of the window.
        style: Style sheet that leaves out parts of the page.

    """

    commands: Sequence[Sequence[str]]
    page: str
    width: int
    height: int
    style: str = ""


def show_items(container: str, *numbers: int) -> str:
    """Return a style sheet that leaves only some children of an element.

    Example:
        >>> show_items("main", 5, 6)
        'main > :not(:nth-child(5)):not(:nth-child(6)) { display: none }'

    """
    others = "".join(f":not(:nth-child({number}))" for number in numbers)
    return f"{container} > {others} {{ display: none }}"


RUN = ("fit", "--config", "configs/tiny.yaml", "--threads", "1", "--mlflow", "none")

SHOTS = {
    "tutorial_heatmap": Picture(
        [
            [
                *(*RUN, "--condition", "first", "--trainer.max_steps", "10", "--trainer.val_check_interval", "5"),
                *("--data.init_args.validation_size", "64"),
            ]
        ],
        "runs/first-seed0/heatmap/step_000009.html",
        1000,
        555,
        show_items("main", 1, 2, 3),
    ),
    "sample": Picture(
        [
            [*RUN, "--condition", "look", "--trainer.max_steps", "4", "--data.init_args.validation_size", "16"],
            [
                *("sample", "--ckpt_path", "runs/look-seed0", "--question", QUESTION, "--answer", "13"),
                *("--completions", "8", "--html", "answer.html"),
            ],
        ],
        "answer.html",
        1000,
        545,
        show_items("main", 1, 2),
    ),
    "card": Picture([["card", "GTPO", "--budget", "batch"]], "cards/GTPO-batch/card.html", 1100, 1250),
    "report": Picture(
        [["report", "campaigns/equal_tokens_long_chains"]],
        "campaigns/equal_tokens_long_chains/report/report.html",
        1160,
        1395,
    ),
}


def photograph_page(page: Path, width: int, height: int, style: str = "") -> bytes:
    """Return a picture of a page as a browser of some size shows it.

    Args:
        page: HTML file.
        width: Columns of the window.
        height: Rows of the window.
        style: Style sheet that is added to the page.

    """
    with tempfile.TemporaryDirectory() as folder:
        shown, taken = Path(folder, "page.html"), Path(folder, "page.png")
        text = page.read_text(encoding="utf-8")
        shown.write_text(text.replace("</head>", f"<style>{style}</style></head>", 1), encoding="utf-8")
        window = ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}")
        waits = ("--virtual-time-budget=5000", f"--screenshot={taken}", shown.as_uri())
        subprocess.run(["chromium", *window, *waits], check=True, capture_output=True)
        return shrink_picture(taken.read_bytes())


def shrink_picture(content: bytes) -> bytes:
    """Return a PNG without what nobody sees; a large one with 256 colours."""
    image = Image.open(io.BytesIO(content)).convert("RGB")
    for shown in (image, image.quantize(256, kmeans=1, dither=Image.Dither.NONE)):
        written = io.BytesIO()
        shown.save(written, "PNG", optimize=True)
        if len(written.getvalue()) < LARGEST:
            break
    return written.getvalue()


def take_picture(picture: Picture, work: Path) -> bytes:
    """Return a picture of the page that some commands leave in a folder."""
    for words in picture.commands:
        subprocess.run([sys.executable, "-m", "rlcredit", *words], cwd=work, check=True)
    return photograph_page(work / picture.page, picture.width, picture.height, picture.style)


def main() -> None:
    """Make the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*SHOTS, []], metavar="NAME", help=", ".join(SHOTS))
    parser.add_argument("--work", type=Path, help="folder in which commands run; a temporary one by default")
    parser.add_argument("--out", type=Path, default=PICTURES)
    args = parser.parse_args()
    if shutil.which("chromium") is None:
        parser.error("chromium is not on the path.")
    for name in args.names or SHOTS:
        file = args.out / f"{name}.png"
        with tempfile.TemporaryDirectory() as folder:
            file.write_bytes(take_picture(SHOTS[name], args.work or Path(folder)))
        print(file)


if __name__ == "__main__":
    main()

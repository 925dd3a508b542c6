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

PICTURE_FOLDER = Path(__file__).parents[1] / "docs" / "pictures"

MAX_PICTURE_BYTES = 200_000
"""Bytes from which on a picture is reduced to 256 colours."""

SAMPLE_QUESTION = "State the final answer to the following arithmetic problem: 4 + 3 - 2 + 8 ="


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
    exclusions = "".join(f":not(:nth-child({number}))" for number in numbers)
    return f"{container} > {exclusions} {{ display: none }}"


RUN_WORDS = ("fit", "--config", "configs/tiny.yaml", "--threads", "1", "--mlflow", "none")

PICTURE_RECIPES = {
    "tutorial_heatmap": Picture(
        [
            [
                *(*RUN_WORDS, "--condition", "first", "--trainer.max_steps", "10", "--trainer.val_check_interval", "5"),
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
            [*RUN_WORDS, "--condition", "look", "--trainer.max_steps", "4", "--data.init_args.validation_size", "16"],
            [
                *("sample", "--ckpt_path", "runs/look-seed0", "--question", SAMPLE_QUESTION, "--answer", "13"),
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
        [["report", "campaigns/turns_running_sum"]],
        "campaigns/turns_running_sum/report/report.html",
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
        styled_page = Path(folder, "page.html")
        screenshot = Path(folder, "page.png")
        text = page.read_text(encoding="utf-8")
        styled_page.write_text(text.replace("</head>", f"<style>{style}</style></head>", 1), encoding="utf-8")
        window = ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}")
        waits = ("--virtual-time-budget=5000", f"--screenshot={screenshot}", styled_page.as_uri())
        subprocess.run(["chromium", *window, *waits], check=True, capture_output=True)
        return shrink_picture(screenshot.read_bytes())


def shrink_picture(content: bytes) -> bytes:
    """Return a PNG without its metadata; a large one with 256 colours."""
    image = Image.open(io.BytesIO(content)).convert("RGB")
    for variant in (image, image.quantize(256, kmeans=1, dither=Image.Dither.NONE)):
        buffer = io.BytesIO()
        variant.save(buffer, "PNG", optimize=True)
        if len(buffer.getvalue()) < MAX_PICTURE_BYTES:
            break
    return buffer.getvalue()


def take_picture(picture: Picture, work: Path) -> bytes:
    """Return a picture of the page that some commands leave in a folder."""
    for words in picture.commands:
        subprocess.run([sys.executable, "-m", "rlcredit", *words], cwd=work, check=True)
    return photograph_page(work / picture.page, picture.width, picture.height, picture.style)


def main() -> None:
    """Make the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", choices=[*PICTURE_RECIPES, []], metavar="NAME", help=", ".join(PICTURE_RECIPES)
    )
    parser.add_argument("--work", type=Path, help="folder in which commands run; a temporary one by default")
    parser.add_argument("--out", type=Path, default=PICTURE_FOLDER)
    args = parser.parse_args()
    if shutil.which("chromium") is None:
        parser.error("chromium is not on the path.")
    for name in args.names or PICTURE_RECIPES:
        file = args.out / f"{name}.png"
        with tempfile.TemporaryDirectory() as folder:
            file.write_bytes(take_picture(PICTURE_RECIPES[name], args.work or Path(folder)))
        print(file)


if __name__ == "__main__":
    main()

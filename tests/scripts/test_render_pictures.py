"""Pictures of pages: what is shown is there, and a browser shows it."""

import io
import shutil
from pathlib import Path

import pytest
import render_pictures
from PIL import Image

from rlcredit.cli.commands import COMMAND_TABLE

ROOT = Path(__file__).parents[2]


def test_every_picture_stands_on_a_page_and_is_small():
    pages = "".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    files = sorted(render_pictures.PICTURE_FOLDER.glob("*.png"))
    assert set(render_pictures.PICTURE_RECIPES) < {file.stem for file in files}
    for file in files:
        assert f"pictures/{file.name})" in pages
        assert file.stat().st_size <= render_pictures.MAX_PICTURE_BYTES


def test_every_picture_is_made_by_a_command():
    named = {words[0] for picture in render_pictures.PICTURE_RECIPES.values() for words in picture.commands}
    assert named <= COMMAND_TABLE.keys()


def test_a_large_picture_is_reduced_to_its_colours(tmp_path, monkeypatch):
    image = Image.linear_gradient("L").convert("RGB")
    image.save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    assert Image.open(io.BytesIO(render_pictures.shrink_picture(content))).mode == "RGB"
    monkeypatch.setattr(render_pictures, "MAX_PICTURE_BYTES", 10)
    assert Image.open(io.BytesIO(render_pictures.shrink_picture(content))).mode == "P"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_shows_the_parts_that_are_wanted(tmp_path):
    page = tmp_path / "page.html"
    blocks = "".join(f'<p style="margin:0;height:50px;background:{colour}"></p>' for colour in ("red", "blue", "lime"))
    page.write_text(f'<html><head></head><body style="margin:0"><main>{blocks}</main></body></html>')
    taken = render_pictures.photograph_page(page, 500, 200, render_pictures.show_items("main", 2, 3))
    image = Image.open(io.BytesIO(taken)).convert("RGB")
    assert image.size == (500, 200)
    assert [image.getpixel((200, row)) for row in (25, 75, 150)] == [(0, 0, 255), (0, 255, 0), (255, 255, 255)]

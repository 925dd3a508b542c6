"""Fixtures of the product that studies use too, and a folder where declarations are read as those of a study."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import restore_thread_count, rollout

ROOT = Path(__file__).parents[2]

__all__ = ["restore_thread_count", "rollout"]


@pytest.fixture
def campaigns(tmp_path):
    """A folder of campaigns beside which lie the conditions of all studies."""
    for file in (ROOT / "studies").rglob("conditions/**/*.yaml"):
        place = tmp_path / "conditions" / file.parent.name
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    folder = tmp_path / "study" / "campaigns"
    folder.mkdir(parents=True)
    return folder

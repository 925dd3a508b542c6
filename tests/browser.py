"""A real browser, and a page as it leaves it."""

import shutil
import subprocess

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome", "chrome"])), None)


FLAGS = """
    --headless --no-sandbox --disable-gpu --no-first-run --disable-quic --disable-background-networking
    --disable-component-update --disable-sync --virtual-time-budget=4000 --dump-dom
"""


def draw_page(path, profile):
    """Return the page as a browser leaves it."""
    command = [BROWSER, *FLAGS.split(), f"--user-data-dir={profile}", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

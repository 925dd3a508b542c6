"""A real browser, and a page as it leaves it."""

import re
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


MEASURE = """
<script>
addEventListener("load", () => {
  const isBeyond = each => each.getBoundingClientRect().right > innerWidth + 1;
  const scrolls = each => each.closest(".scroll, .tokens, pre, math");
  const beyond = [...document.querySelectorAll("body *")].filter(each => isBeyond(each) && !scrolls(each));
  const broken = [...document.images].filter(image => !image.naturalWidth);
  const names = [...beyond, ...broken].slice(0, 3).map(each => `${each.tagName} ${each.className}`);
  parent.postMessage({ measured: [innerWidth, document.documentElement.scrollWidth, ...names].join(", ") }, "*");
});
</script>
"""


def find_overflow(path, profile, widths=(320, 400, 800, 1400)):
    """Return the widths of windows that a page does not fit, with elements beyond the edge and broken images."""
    text = path.read_text(encoding="utf-8").replace("Content-Security-Policy", "no-policy")
    page, frame = (path.with_name(f"{path.stem}_{kind}.html") for kind in ("measured", "frame"))
    page.write_text(text + MEASURE, encoding="utf-8")
    frames = [f'<iframe style="width: {width}px; height: 900px" src="{page.name}"></iframe>' for width in widths]
    listen = 'addEventListener("message", ({ data }) => { document.body.append(`<${data.measured ?? ""}>`); });'
    frame.write_text(f"<!doctype html><script>{listen}</script>{''.join(frames)}", encoding="utf-8")
    measured = re.findall(r"&lt;(\d+), (\d+)(.*?)&gt;", draw_page(frame, profile))
    assert len(measured) == len(widths), "the page did not say how wide it is"
    return {int(width): beyond for width, need, beyond in measured if int(need) > int(width) or beyond}

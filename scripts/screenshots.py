"""Screenshots of a report in light and dark mode and on a phone: screenshots.py REPORT.html FOLDER."""

import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from browser import Browser

_DRAWN = "new Promise(done => setTimeout(done, 400))"
_SCRUB = (
    "document.querySelectorAll('input[type=range]').forEach(slider => {"
    "slider.value = Math.floor(slider.max / 3); slider.dispatchEvent(new Event('input')); })"
)
_SCROLL = (
    "[...document.querySelectorAll('h3')].find(title => title.textContent === 'Broadcasts and links')"
    ".scrollIntoView(); scrollBy(0, -60)"
)


def main(report: Path, folder: Path) -> None:
    """Take the three screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, Browser(profile) as browser:
        for name, size, look, scroll in (
            ("light", (1180, 1500), {}, ""),
            ("dark", (1180, 1240), {"dark": True}, _SCROLL),
            ("phone", (390, 1000), {"phone": True}, _SCROLL),
        ):
            browser.look(*size, **look)
            browser.open(report)
            for script in (_DRAWN, _SCRUB, scroll, _DRAWN):
                browser.ask(script)
            path = folder / f"{name}.png"
            browser.screenshot(path)
            picture = Image.open(path).convert("RGB").resize(size, Image.Resampling.LANCZOS)
            picture.quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
            print(f"wrote {path} ({path.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

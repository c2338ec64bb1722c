"""The built pages as a reader meets them, in Chromium: ``make site``, or this script after ``make docs``.

Every link inside the site leads to a page and a heading that are there; every page loads without an error in the
console, shows its pictures and needs no sideways scrolling on a phone; every example has a figure of its own; formulas
have no scrollbar on a desktop; the search finds something.
"""

import contextlib
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(__file__).resolve().parent / "_build" / "html"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
PHONE, DESKTOP = 390, 1280  # pixels
PATIENCE = 60  # seconds, for a machine that is busy with other things
SHOWN = "return [...document.images].filter(i => !i.complete || i.naturalWidth === 0).map(i => i.src)"
FIGURE = re.compile(r"<img[^>]*\bsphx-glr-(?:single|multi)-img\b")
CRAMPED = """
return [...document.querySelectorAll('div.math')].filter(e => e.scrollHeight > e.clientHeight).length
"""
WIDE = """
const wide = document.documentElement.scrollWidth;
if (wide <= arguments[0]) return null;
const beyond = [...document.querySelectorAll('article *')]
  .filter(e => e.getBoundingClientRect().right > arguments[0]);
return wide + ' pixels: ' + beyond.slice(0, 3).map(e => e.tagName + '.' + e.className).join(', ');
"""


class Page(HTMLParser):
    """The links, and the places that can be linked to, of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Gather what a tag links to and is called."""
        found = dict(attrs)
        self.places |= {name for name in (found.get("id"), found.get("name")) if name}
        for name in ("href", "src"):
            if tag in ("a", "img", "script", "link") and found.get(name):
                self.links.append(str(found[name]))


def broken_links(pages: list[Path]) -> list[str]:
    """Links inside the site that lead nowhere."""
    read = {page: Page(page.read_text()) for page in pages}
    found = []
    for page, content in read.items():
        for link in content.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link == "#":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            places = read[target].places if target in read else None
            if not target.exists() or (parts.fragment and places is not None and unquote(parts.fragment) not in places):
                found.append(f"{page.relative_to(SITE)} links to {link}")
    return found


def missing_figures(pages: list[Path]) -> list[str]:
    """Examples of the gallery that show nothing."""
    examples = [page for page in pages if page.parent.name == "gallery" and page.stem.startswith("plot_")]
    lacking = [page for page in examples if not FIGURE.search(page.read_text())]
    return [f"{page.relative_to(SITE)}: no figure; GALLERY=0 builds none" for page in lacking]


def opened(*more: str) -> Any:
    """A browser that keeps what the console says."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in (*FLAGS, *more):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver"))


def faults(driver: Any, page: Path) -> list[str]:
    """What is wrong with a page on a phone: errors, pictures that do not show, sideways scrolling."""
    driver.get(page.as_uri())
    driver.execute_script("for (const picture of document.images) picture.loading = 'eager'")
    with contextlib.suppress(TimeoutException):
        WebDriverWait(driver, PATIENCE / 10, poll_frequency=0.05).until(lambda _: not driver.execute_script(SHOWN))
    errors = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    hidden = [f"picture {source} does not show" for source in driver.execute_script(SHOWN)]
    wide = driver.execute_script(WIDE, PHONE)
    told = [*errors, *hidden, *([f"scrolls sideways, {wide}"] if wide else [])]
    return [f"{page.relative_to(SITE)}: {fault}" for fault in told]


def desktop_faults(pages: list[Path]) -> list[str]:
    """Pages with formulas that are higher than their place, which a browser with scrollbars gives one each."""
    driver, found = opened(f"--window-size={DESKTOP},900"), []
    for page in pages:
        driver.get(page.as_uri())
        cramped = driver.execute_script(CRAMPED)
        found += [f"{page.relative_to(SITE)}: {cramped} formulas scroll up and down"] if cramped else []
    driver.quit()
    return found


def search_fault(driver: Any) -> list[str]:
    """Whether the search finds nothing."""
    driver.get((SITE / "search.html").as_uri() + "?q=copula")
    try:
        WebDriverWait(driver, PATIENCE).until(
            lambda _: driver.execute_script("return document.querySelectorAll('#search-results li').length")
        )
    except TimeoutException:
        return ["search.html: nothing is found for copula"]
    return []


def main() -> int:
    """Say what is wrong, if anything."""
    pages = sorted(SITE.rglob("*.html"))
    if not pages:
        sys.exit("There is no site: run `make docs` first.")
    looked_at = [page for page in pages if "_modules" not in page.parts]
    found = broken_links(pages) + missing_figures(pages) + desktop_faults([SITE / "theory" / "algorithms.html"])
    driver = opened("--hide-scrollbars")
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": PHONE, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    )
    for page in looked_at:
        found += faults(driver, page)
    found += search_fault(driver)
    driver.quit()
    sys.stdout.write("".join(f"{fault}\n" for fault in found))
    sys.stdout.write(f"{len(pages)} pages, links of all, {len(looked_at)} in Chromium: {len(found)} faults\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

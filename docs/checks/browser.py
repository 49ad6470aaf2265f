"""A headless Chromium that looks at pages served from this machine and says what is wrong."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import urldefrag, urlsplit

from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = (1440, 1000), (390, 844)
LOCAL = "http://127.0.0.1:"

# Material replaces `pre.mermaid` by a `div.mermaid` that holds the drawing.
_STATE = """
const drawn = [...document.querySelectorAll('div.mermaid')];
return {
  loaded: document.readyState === 'complete',
  source: document.querySelectorAll('pre.mermaid').length,
  empty: drawn.filter(diagram => diagram.clientHeight < 40).length,
  images: [...document.images].filter(image => image.complete && !image.naturalWidth)
    .map(image => image.src),
  unnamed: [...document.images].filter(image => !image.alt).map(image => image.src),
  links: [...document.querySelectorAll('a[href]')].map(link => link.href),
  ids: [...document.querySelectorAll('[id]')].map(element => element.id),
};
"""
_OVERFLOW = "return document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"


@dataclass
class Page:
    """What one page is made of."""

    address: str
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


@contextmanager
def serve(folder: Path, prefix: str = "/") -> Iterator[str]:
    """Serve a folder below a path of a local server, as a host does that has other sites too."""

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            inside = path.startswith(prefix)
            return super().translate_path(path.removeprefix(prefix) if inside else "/no such file")

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{LOCAL}{server.server_port}{prefix}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def open_browser() -> Iterator[Chrome]:
    """A browser that can reach this machine only, and logs what its pages ask for."""
    options = ChromeOptions()
    options.binary_location = next(path for name in BROWSERS if (path := which(name)))
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        "disable-background-networking",
        "disable-component-update",
        "hide-scrollbars",
        "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    browser = Chrome(options, Service(which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def resize(browser: Chrome, size: tuple[int, int]) -> None:
    """Set the page's own size; a window cannot be as narrow as a phone."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def look_at(browser: Chrome, address: str) -> Page:
    """Open a page, wait until it is drawn, and list what is wrong with it at both widths."""
    page = Page(address)
    resize(browser, DESKTOP)
    browser.get(address)
    state = _settled(browser)
    page.links, page.ids = state["links"], set(state["ids"])
    if undrawn := state["source"] + state["empty"]:
        page.faults.append(f"{undrawn} diagrams are not drawn")
    page.faults += [f"image {source} does not load" for source in state["images"]]
    page.faults += [f"image {source} has no alt text" for source in state["unnamed"]]
    resize(browser, PHONE)
    if (pixels := browser.execute_script(_OVERFLOW)) > 0:
        page.faults.append(f"on a phone the page is {pixels} pixels too wide")
    page.faults += logged_faults(browser)
    return page


def _settled(browser: Chrome) -> dict[str, Any]:
    """The page's state once nothing is left to draw, or after five seconds."""

    def settled(_: Any) -> bool:
        state = browser.execute_script(_STATE)
        return bool(state["loaded"] and not state["source"] and not state["empty"])

    with suppress(TimeoutException):  # What is missing then shows in the state.
        WebDriverWait(browser, 5, poll_frequency=0.05).until(settled)
    state: dict[str, Any] = browser.execute_script(_STATE)
    return state


def logged_faults(browser: Chrome) -> list[str]:
    """Errors of the console, and requests to anything but this machine, since the last look."""
    faults = [
        f"console: {entry['message']}"
        for entry in browser.get_log("browser")  # type: ignore[no-untyped-call]
        if entry["level"] in ("SEVERE", "WARNING")
    ]
    for entry in browser.get_log("performance"):  # type: ignore[no-untyped-call]
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if urlsplit(url).scheme not in ("data", "blob") and not url.startswith(LOCAL):
                faults.append(f"asks for {url}")
    return faults


def broken_links(pages: list[Page], root: str, folder: Path) -> list[str]:
    """Links inside the site that lead to no file, or to no place on their page."""
    ids = {page.address: page.ids for page in pages}
    faults = []
    for page in pages:
        for link in dict.fromkeys(page.links):
            target, fragment = urldefrag(link)
            if not target.startswith(LOCAL):
                continue
            path = folder / target.removeprefix(root)
            exists = target.startswith(root) and (path.is_file() or (path / "index.html").exists())
            if not exists or (fragment and target in ids and fragment not in ids[target]):
                faults.append(f"{page.address} links to {link}")
    return faults

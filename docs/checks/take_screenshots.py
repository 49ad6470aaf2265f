"""Take the site's pictures of Dagster's UI, from the history that the warehouse's main job left.

Run by `nox -s screenshots`, after the main job.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from browser import open_browser, resize
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from warehouse.storage import PROJECT, create_dagster_home

ASSETS = Path(__file__).parents[1] / "assets"
MAXIMUM_BYTES = 150_000


@dataclass(frozen=True)
class Shot:
    """A picture: where, how big, and the texts that are there once the page is drawn."""

    name: str
    path: str
    size: tuple[int, int]
    texts: tuple[str, ...]
    scroll_to: str | None = None
    filter_by: str | None = None


SHOTS = [
    Shot(
        "checks",
        "/assets/weather?view=checks&checkDetail=dy_rule__wind_speed__max",
        (1280, 640),
        ("dy_rule__wind_speed__max", "dy_failed_sample", "1048.36"),
        filter_by="wind_speed",
    ),
    Shot(
        "columns",
        "/assets/weather?view=overview",
        (1280, 720),
        ("wind_gust", "every float"),
        scroll_to="Columns",
    ),
    Shot(
        "materialization",
        "/assets/weather?view=events",
        (1360, 960),
        ("dataframely/error_share", "dataframely/valid_sample"),
    ),
    Shot(
        "report",
        "/assets/departures?view=events",
        (1360, 600),
        ("dataframely/report", "plane_is_known", "15.6%"),
    ),
    Shot("partitions", "/assets/flights?view=partitions", (1280, 720), ("Missing (6)", "EWR")),
]


@contextmanager
def webserver() -> Iterator[str]:
    """Dagster's web server on a free port, until it is no longer needed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    workspace = str(PROJECT / "workspace.yaml")
    command = ["dagster_webserver", "-h", "127.0.0.1", "-p", port, "-w", workspace]
    environment = {**os.environ, "DAGSTER_HOME": str(create_dagster_home())}
    server = subprocess.Popen([sys.executable, "-m", *command], env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        while server.poll() is None:
            try:
                urlopen(f"{address}/server_info").close()
                break
            except URLError:
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait()


def take(browser: Chrome, address: str, shot: Shot, mode: str) -> None:
    resize(browser, shot.size)
    browser.get(address + shot.path)
    WebDriverWait(browser, 60).until(lambda _: shows(browser, shot.texts))
    if shot.filter_by:
        box = browser.find_element(By.CSS_SELECTOR, "input[placeholder='Filter checks']")
        box.send_keys(shot.filter_by)
    if shot.scroll_to:
        found = browser.find_element(By.XPATH, f"//*[normalize-space(text())='{shot.scroll_to}']")
        browser.execute_script("arguments[0].scrollIntoView({block: 'start'})", found)
    time.sleep(2)  # Spinners and fading tooltips have no text to wait for.
    path = ASSETS / f"{shot.name}-{mode}.png"
    browser.save_screenshot(str(path))
    if path.stat().st_size > MAXIMUM_BYTES:
        sys.exit(f"{path.name} has {path.stat().st_size:,} bytes, more than {MAXIMUM_BYTES:,}.")


def shows(browser: Chrome, texts: tuple[str, ...]) -> bool:
    page = browser.find_element(By.TAG_NAME, "body").text
    return all(text in page for text in texts)


def main() -> None:
    ASSETS.mkdir(exist_ok=True)
    with webserver() as address, open_browser() as browser:
        for mode in ("light", "dark"):
            scheme = {"name": "prefers-color-scheme", "value": mode}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            for shot in SHOTS:
                take(browser, address, shot, mode)


if __name__ == "__main__":
    main()

"""The built site in a real browser: complete, and without a request to another machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PHONE, broken_links, logged_faults, look_at, open_browser, resize, serve
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

SITE = Path(__file__).parents[2] / "site"
PREFIX = "/a/path/of/its/own/"

FAULTY_PAGE = """<!doctype html><html><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="http://fonts.example/roboto.css"></head>
<body style="width: 900px"><img src="missing.png"><pre class="mermaid">no diagram</pre>
<a href="missing.html">page</a> <a href="#missing">place</a>
<script>undefinedFunction()</script></body></html>"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def root() -> Iterator[str]:
    with serve(SITE, PREFIX) as root:
        yield root


def test_every_page_is_complete_and_asks_nobody_else(browser: Chrome, root: str) -> None:
    files = sorted(SITE.rglob("index.html"))
    assert len(files) > 50
    pages = [
        look_at(browser, f"{root}{file.parent.relative_to(SITE).as_posix()}/".replace("/./", "/"))
        for file in files
    ]
    assert {page.address: page.faults for page in pages if page.faults} == {}
    assert broken_links(pages, root, SITE) == []


@pytest.mark.parametrize("size", [PHONE, (1440, 1000)], ids=["phone", "desktop"])
def test_search_finds_a_page(browser: Chrome, root: str, size: tuple[int, int]) -> None:
    browser.get(root)
    resize(browser, size)
    if size == PHONE:
        browser.find_element(By.CSS_SELECTOR, "label[for=__search].md-icon").click()
    wait = WebDriverWait(browser, 10)
    box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    wait.until(lambda _: box.is_displayed() and box.is_enabled())
    box.click()
    box.send_keys("NothingSurvivedError")
    results = "a.md-search-result__link"
    wait.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, results))
    found = browser.find_element(By.CSS_SELECTOR, results).get_attribute("href")
    assert (found or "").startswith(root)
    assert logged_faults(browser) == []


def test_the_page_for_a_wrong_address_is_there() -> None:
    assert "404" in (SITE / "404.html").read_text()


def test_faults_are_found(browser: Chrome, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(FAULTY_PAGE)
    with serve(tmp_path) as root:
        page = look_at(browser, root)
        links = broken_links([page], root, tmp_path)
    assert links == [f"{root} links to {root}missing.html", f"{root} links to {root}#missing"]
    faults = "\n".join(page.faults)
    for part in (
        "1 diagrams are not drawn",
        f"image {root}missing.png does not load",
        f"image {root}missing.png has no alt text",
        "pixels too wide",
        "undefinedFunction is not defined",
        "asks for http://fonts.example/roboto.css",
    ):
        assert part in faults

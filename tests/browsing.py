"""A headless Chromium for the tests of pages, and what is asked of every page."""

import os
import re
import shutil
import time
from urllib.parse import quote, unquote

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

DESKTOP, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="session")
def browser():
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        missing = "the report's tests need Chromium and its driver: apt-get install chromium chromium-driver"
        pytest.fail(missing) if "CI" in os.environ else pytest.skip(missing)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(driver))
    yield running
    running.quit()


def resize(browser, size, scheme="light", media=""):
    """Let the browser show pages at a size, in a colour scheme, or on paper."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def unfold(browser):
    """Open all that a page folds."""
    browser.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    time.sleep(0.5)  # tables find their shape


def grades_of(browser):
    """The grades in a page's tables: each with its `place` (its row's text) and whether it is `seen` as it stands."""
    return browser.execute_script("""
        const grades = document.querySelectorAll("td :is(.same, .near, .open, .differs)");
        return [...grades].map((grade) => {
          const own = grade.getBoundingClientRect();
          const box = grade.closest(".pst-scrollable-table-container").getBoundingClientRect();
          const seen = grade.checkVisibility() && own.width > 0 && own.left >= Math.max(0, box.left) - 1
            && own.right <= Math.min(document.documentElement.clientWidth, box.right) + 1;
          return {place: grade.closest("tr").innerText, seen};
        });
    """)


def searched(browser, folder, query):
    """The finds of a site's search: (page, tier) in its order; 2 by its title, 1 by a heading, 0 by its text.

    A page stands with the first of its places. Words are compared without their ends: stream is in streams.
    """
    browser.get(f"{(folder / 'search.html').as_uri()}?q={quote(query)}")
    browser.implicitly_wait(60)
    browser.find_elements("css selector", "#search-results li a")
    browser.implicitly_wait(0)
    shown = "return [...document.querySelectorAll('#search-results li a')].map((each) => each.getAttribute('href'))"
    before, links = None, []
    while links != before:  # they come one by one
        time.sleep(1)
        before, links = links, browser.execute_script(shown)
    words = [word.lower().rstrip("s") for word in query.split()]
    pages = dict.fromkeys(unquote(link).partition("#")[0].partition("?")[0] for link in links)
    found = []
    for page in pages:
        text = (folder / page).read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        headings = [re.sub("<[^>]*>", "", each).lower() for each in re.findall(r"<h\d>(.*?)<a class", text, re.DOTALL)]
        having = [all(word in heading for word in words) for heading in headings]
        found.append((page, 2 if having[:1] == [True] else int(any(having))))
    return found

"""The site in headless Chromium: it loads, leads everywhere that it says, and suits a phone and the dark."""

import csv
import io
import json
import re
import shutil
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_core_python.selenium import Axe
from browsing import DESKTOP, PHONE, grades_of, resize, searched, unfold
from selenium.webdriver.common.by import By
from world import Project
from world.published import forge

from clpapers import provenance

HERE = Path(__file__).with_name("site")  # what the small project has more
GUIDES = {  # three pages a query, which find it by title, by a heading, and by their text
    "own method": ("# Your own method", "# An attempt\n\n## Own method", "# About\n\nMy own method."),
    "streams": ("# Streams", "# All\n\n## Streams of one pass, and of several passes", "# A\n\nStreams."),
    "CBRS": ("# What CBRS keeps", "# Against\n\n## MIR and CBRS", "# Also\n\nCBRS."),
    "label smoothing": (
        "# On label smoothing",
        "# Any\n\n## The label smoothing",
        "# Alike\n\nThe key `label_smoothing`.",
    ),
}
PAPER_PAGES = ["reproduction/mini.html", "findings/mini.html"]
PAGES = ["index.html", "holds.html", "runs.html", *PAPER_PAGES, "api.html", "targets.html"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The small project with its site, built by the rule."""
    project = Project.create(tmp_path_factory.mktemp("site") / "project")
    shutil.copytree(HERE, project.folder, dirs_exist_ok=True)
    project.write("config/reported/mini.csv", project.read("config/reported/mini.csv") + project.read("reported.csv"))
    project.edit("config/papers/mini.yaml", "title: A paper", f"{project.read('about.yaml')}title: A paper")
    for query, texts in GUIDES.items():
        for place, text in zip(("z", "m", "a"), texts):  # in the order of names the last is first
            project.write(f"docs/{place}_{query.replace(' ', '_').lower()}.md", f"{text}\n\nMore.\n")
    done = project.snakemake("results/mini/report/index.html", "--cores", "2")
    assert done.returncode == 0, done.stdout
    return project


@pytest.fixture(scope="module")
def folder(built):
    """The site, with some verdicts changed for those that a comparison on real data has."""
    changed = {"table1.reported": ("differs", "near", "same"), "claims": ("undecided", "holds")}
    for name, verdicts in changed.items():
        file = built.folder / f"results/mini/targets/mini/{name}.csv"
        lines = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
        assert {line["verdict"] for line in lines} == {"not comparable"}
        for line, verdict in zip(lines, verdicts):
            line |= {"verdict": verdict, "reason": ""} | ({"cause": ""} if "cause" in line else {})
        with file.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, lines[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
        now = {"path": str(file.relative_to(built.folder)), "sha256": provenance.sha256(file)}
        forge(provenance.record_path(file), lambda record, now=now: record["outputs"].__setitem__(0, now))
    done = built.clpapers("report", "--out", "results/mini/report/index.html")
    assert done.returncode == 0, done.stdout
    return built.folder / "results/mini/report"


@pytest.fixture
def show(browser, folder):
    """Opens a page of the site at a size, in a colour scheme."""

    def opened(page, size=DESKTOP, scheme="light"):
        resize(browser, size, scheme)
        file, _, query = page.partition("?")
        browser.get(f"{(folder / file).as_uri()}?{query}")
        time.sleep(0.5)  # colours fade in
        return browser

    return opened


class Page(HTMLParser):
    """The addresses that a page refers to, its places, and its words."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.places, self.words = [], [], []
        self.handle_data = self.words.append
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("href", "src")]
        self.places += [value for name, value in attributes if name == "id"]


def article(folder, page):
    """The text of a page's own part."""
    text = (folder / page).read_text(encoding="utf-8")
    return " ".join("".join(Page(text.partition("<article")[2].partition("</article>")[0]).words).split())


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")])
def test_a_page_loads_in_silence_and_axe_finds_nothing(show, page, size, scheme):
    browser = show(page, size, scheme)
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", background))) < 80) == (scheme == "dark")
    found = Axe().run(browser)["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_every_link_leads_somewhere_within_the_site(folder):
    files = folder.rglob("[!w]*.html")  # webpack's is no page
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    assert {*PAGES} <= {str(path.relative_to(folder)) for path in pages}
    data = json.loads((folder / "_static/runs_data.js").read_text(encoding="utf-8").partition("=")[2].rstrip(";\n"))
    runs = {place for row in data["rows"] for place in (row[0], "mini/")}
    for path, page in pages.items():
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme in ("data", "https") or path.name == "search.html":
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert file.is_file(), (path, address)
            assert file.is_relative_to(folder), (path, address)
            places = pages[file].places if file in pages else []
            places = [*places, *runs] if file.name == "runs.html" else places
            assert not parts.fragment or unquote(parts.fragment) in places, (path, address)


def test_from_home_a_number_and_its_runs_are_two_clicks_away(show, folder):
    browser = show("index.html")
    browser.find_element(By.LINK_TEXT, "mini: A paper of two methods").click()
    row = next(r for r in browser.find_elements(By.CSS_SELECTOR, "tbody tr") if r.text.startswith("ACE"))
    row.find_element(By.CSS_SELECTOR, "a").click()
    assert unquote(browser.current_url).endswith("runs.html#mini/table1 | ACE | MNIST")
    table = browser.find_element(By.ID, "run-list")
    for seed in (0, 1):
        assert re.search(rf"runs/mnist/stf-0.05-n30/ace-\w+/seed{seed}.json", table.text)
    assert "/er-" not in table.text
    for run in folder.parent.glob("runs/mnist/*/ace-*/seed?.json"):
        assert provenance.sha256(run)[:12] in table.text
    field = browser.find_element(By.ID, "run-filter")
    field.clear()
    field.send_keys("mnist /er- seed1")
    assert {cell.text for cell in table.find_elements(By.CSS_SELECTOR, "td:nth-child(2)")} == {"1"}
    assert "/ace-" not in table.text


def test_a_number_that_differs_leads_to_its_cause(show):
    browser = show("reproduction/mini.html")
    unfold(browser)
    links = [a for a in browser.find_elements(By.CSS_SELECTOR, ".differs a") if a.is_displayed()]
    assert [link.text for link in links] == ["differs"] * 2  # in the table, and in the list of differences
    links[0].click()
    assert unquote(browser.current_url).endswith("findings/mini.html#our-er-has-other-weights")


def test_a_paper_begins_with_what_holds_and_what_differs(folder):
    said = article(folder, "reproduction/mini.html")
    heads = ("What holds", "What differs, and why", "How many numbers", "Tables and figures")
    assert sorted(heads, key=said.index) == [*heads]
    assert "Both guess. (2) holds where tested holds:" in said
    assert "ACE is better. (1) undecided" in said
    assert "A. Author, 2020" in said
    assert "ACE is <b>better</b> & simpler" in said
    assert "has other weights 1 0 in part Without" not in said  # a cause without a number is left out below
    assert "all 1 0" in said


def test_home_counts_and_has_a_card_a_paper(folder):
    said = article(folder, "index.html")
    assert "The papers print 3 numbers, and ours stand beside 3." in said
    assert "We grade 3 of these, with the grades explained below: 1 are the same, 1 near, 0 open, and 1 differ." in said
    assert "We explain 0 of the 1 that differ, and 1 in part; 0 remain." in said
    assert "mini: A paper of two methods, Author 2020." in said
    assert "Holds where tested. Both guess." in said


def test_guides_lead_on_and_a_link_to_elsewhere_is_text(folder):
    guide = (folder / "guide.html").read_text(encoding="utf-8")
    assert 'href="contributing.html"' in guide
    assert "not there" in guide
    assert "none.py" not in guide
    assert 'href="guide.html#a-guide"' in (folder / "contributing.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("query", GUIDES)
def test_search_works_without_a_server_and_finds_titles_then_headings_then_text(show, folder, query):
    found = searched(show("index.html"), folder, query)
    name = f"_{query.replace(' ', '_').lower()}.html"
    assert [(page, tier) for page, tier in found if page.endswith(name)] == [
        (f"{place}{name}", tier) for place, tier in (("z", 2), ("m", 1), ("a", 0))
    ]
    assert [tier for _, tier in found] == sorted((tier for _, tier in found), reverse=True)


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_every_grade_of_a_table_is_in_sight_without_scrolling_sideways(show, size):
    browser = show("reproduction/mini.html", size)
    unfold(browser)
    found = grades_of(browser)
    assert len(found) == 2 * 3  # in the table, and in the list of differences
    assert [grade for grade in found if not grade["seen"]] == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_no_line_breaks_a_name_and_no_line_of_code_is_cut(show, size):
    browser = show("names.html", size)
    lines = browser.execute_script("""
        const found = [], walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
        let words = "", places = [];
        while (walker.nextNode())
          for (let i = 0; i < walker.currentNode.length; i++) {
            words += walker.currentNode.data[i];
            places.push([walker.currentNode, i]);
          }
        for (const { index } of words.matchAll(/A-GEM/g)) {
          const range = document.createRange(), [last, at] = places[index + 4];
          range.setStart(...places[index]);
          range.setEnd(last, at + 1);
          found.push(new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size);
        }
        return found;
    """)
    assert lines == [1] * 80
    code = browser.find_element(By.CSS_SELECTOR, "article pre")
    assert browser.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", code)


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_heading_that_a_link_leads_to_is_clear_of_the_header(show, size):
    browser = show("reproduction/mini.html", size)
    browser.execute_script("location.hash = 'claims'")
    time.sleep(0.5)
    heading = "document.querySelector('#claims > h2').getBoundingClientRect().top"
    header = "document.querySelector('header.bd-header').getBoundingClientRect().bottom"
    assert browser.execute_script(f"return {heading} - {header}") >= 0


def test_the_audit_knows_the_site_and_the_site_an_edited_run(built, folder, tmp_path):
    copy = built.copy(tmp_path / "project")
    page = copy.folder / "results/mini/report/reproduction/mini.html"
    assert "results/mini/report" not in copy.clpapers("audit").stdout
    page.write_text(page.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    (page.parent / "more.html").write_text("")
    said = copy.clpapers("audit").stdout
    assert re.search(r"failure: results/mini/report/reproduction/mini.html: edited", said)
    assert "results/mini/report/reproduction/more.html" in said
    (run,) = copy.folder.glob("results/mini/runs/mnist/*/ace-*/seed0.json")
    run.write_text(run.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert copy.clpapers("report", "--out", "results/mini/report/index.html").returncode == 0
    data = copy.folder / "results/mini/report/_static/runs_data.js"
    assert data.read_text(encoding="utf-8").count("not as recorded") == 1

"""The report in headless Chromium: it loads, sorts, filters, links, prints, and suits a phone and the dark."""

import base64
import csv
import io
import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import jinja2
import pandas as pd
import pytest
from axe_core_python.selenium import Axe
from browsing import DESKTOP, PHONE, resize
from selenium.webdriver.common.by import By
from workflow.project import REPORTED, Project

from clpapers import provenance
from clpapers.config.model import Target
from clpapers.graph.pages import TEMPLATES
from clpapers.report import site
from clpapers.targets.caption import read_caption
from clpapers.targets.formats import write_table
from clpapers.targets.table import Table, bold_in

MORE_REPORTED = """\
mini,table1,ER,MNIST,average_information_retention,9.5,,,
mini,table1,ACE,MNIST,final_accuracy,10.4,0.5,ci95_halfwidth_20_runs,
mini,table1,ACE,MNIST,average_information_retention,,,,
"""
CLAIMS = """\

mini:
  ace_better:
    section: "1"
    statement: "ACE is <b>better</b> & simpler"
    target: table1
    metric: average_information_retention
    test: above
    of: {learner: ace}
    than: {learner: er}
  both_guess:
    section: "2"
    statement: "both guess"
    target: table1
    metric: final_accuracy
    test: within
    margin: 5
    of: {learner: [er, ace]}
    than: 10
    note: "Printed: 9.5 & 10.4."
"""
LINK = "https://doi.org/10.1000/182"
PAGES = ("index.html", "mini/index.html", "mini/table1.html", "mini/table2.html", "mini/figure1.html")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The small project with its report, built by the rule; then once more with verdicts that stand-ins cannot have."""
    project = Project.create(tmp_path_factory.mktemp("report") / "project")
    project.write("config/reported/mini.csv", REPORTED + MORE_REPORTED)
    about = f"authors: A. Author\nyear: 2020\nlink: {LINK}\n"
    project.edit("config/papers/mini.yaml", "title: A paper", f"{about}title: A paper")
    project.write("config/claims.yaml", CLAIMS)
    done = project.snakemake("results/mini/report/index.html", "--cores", "2")
    assert done.returncode == 0, done.stdout
    return project


@pytest.fixture(scope="module")
def folder(built):
    """The report, with some verdicts changed for those that a comparison on real data has."""
    changed = {"table1.reported": ("differs", "near", "same"), "claims": ("undecided", "supported")}
    for name, verdicts in changed.items():
        file = built.folder / f"results/mini/targets/mini/{name}.csv"
        lines = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
        assert {line["verdict"] for line in lines} == {"not comparable"}
        for line, verdict in zip(lines, verdicts):
            line |= {"verdict": verdict, "reason": ""} | ({"cause": ""} if "cause" in line else {})
        before = provenance.sha256(file)
        with file.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, lines[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
        record = provenance.record_path(file)  # made to hold the new bytes: the report refuses others
        text = record.read_text(encoding="utf-8")
        assert before in text
        entry = json.loads(text.replace(before, provenance.sha256(file)))
        record.write_text(json.dumps(entry | {"seal": provenance.seal(entry)}), encoding="utf-8")
    done = built.clpapers("report", "--out", "results/mini/report/index.html")
    assert done.returncode == 0, done.stdout
    return built.folder / "results/mini/report"


@pytest.fixture
def show(browser, folder):
    """Opens a page of the report at a size, in a colour scheme, on paper or with scripts off."""

    def opened(page, size=DESKTOP, scheme="light", media="", scripts=True):
        resize(browser, size, scheme, media)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        browser.get((folder / page).as_uri())
        return browser

    yield opened
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


class Page(HTMLParser):
    """The addresses that a page refers to, and its places."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.places = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src"):
                self.addresses.append(value)
            if name == "id":
                self.places.append(value)


def column(browser, table, index):
    """The texts of a column of visible rows."""
    rows = browser.find_elements(By.CSS_SELECTOR, f"{table} tbody tr")
    return [row.find_elements(By.XPATH, "./*")[index].text for row in rows if row.is_displayed()]


def test_the_pages_are_those_that_the_record_names(built):
    record = (built.folder / "results/mini/report/index.record.json").read_text()
    files = {path for path in (built.folder / "results/mini/report").rglob("*") if path.is_file()}
    named = re.findall(r'"path": "(results/mini/report/[^"]+)"', record)
    assert {str(path.relative_to(built.folder)) for path in files} == {*named, "results/mini/report/index.record.json"}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")])
def test_a_page_loads_in_silence_and_axe_finds_nothing(show, page, size, scheme):
    browser = show(page, size, scheme)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", background))) < 80) == (scheme == "dark")
    found = Axe().run(browser)["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_every_link_resolves_within_the_report(folder):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    assert {str(path.relative_to(folder)) for path in pages} == set(PAGES)
    for path, page in pages.items():
        assert len(page.places) == len(set(page.places)), path
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme == "data" or address == LINK:
                continue
            assert not parts.scheme, (path, address)
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert file.is_file(), (path, address)
            assert file.is_relative_to(folder), (path, address)
            assert not parts.fragment or unquote(parts.fragment) in pages[file].places, (path, address)


def test_a_number_leads_to_its_runs_streams_and_data(show, folder):
    browser = show("mini/index.html")
    links = browser.find_elements(By.CSS_SELECTOR, "#table1 td a")
    assert len(links) >= 6 + 4  # the table's and, of those with a reported number, once more
    ace = next(row for row in browser.find_elements(By.CSS_SELECTOR, "#table1 tbody tr") if row.text.startswith("ACE"))
    ace.find_element(By.CSS_SELECTOR, "td a").click()
    assert unquote(browser.current_url).endswith("mini/table1.html#ACE-MNIST")
    section = browser.find_element(By.ID, "ACE-MNIST")
    section.find_elements(By.TAG_NAME, "summary")[-1].click()
    assert "learner\nace" in section.text
    for seed in (0, 1):
        assert re.search(rf"runs/mnist/stf-0.05-n30/ace-\w+/seed{seed}.json", section.text)
        assert f"streams/mnist/stf-0.05-n30/seed{seed}.npz" in section.text
    assert "er-" not in section.text
    whole = browser.page_source
    for run in folder.parent.glob("runs/mnist/*/ace-*/seed?.json"):
        assert site.provenance.sha256(run) in whole
    assert "† stand-in" in browser.find_element(By.TAG_NAME, "main").text


def test_a_figure_and_a_table_without_runs_lead_to_their_files(folder):
    assert "streams/toy-13-17-10/split-3/seed0.npz" in (folder / "mini/figure1.html").read_text()
    assert "runs/nets/mini/cifar10.json" in (folder / "mini/table2.html").read_text()


def test_headers_sort_up_and_down(show):
    browser = show("mini/index.html")
    table = "#table1 table.filtered"
    heading = browser.find_element(By.CSS_SELECTOR, f"{table} th[data-column='3']")
    assert heading.text.startswith("Reported")
    assert column(browser, table, 3) == ["80.1 ± 0.5", "9.5", "10.4 ± 0.5"]
    heading.find_element(By.TAG_NAME, "button").click()
    assert column(browser, table, 3) == ["9.5", "10.4 ± 0.5", "80.1 ± 0.5"]
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.find_element(By.TAG_NAME, "button").click()
    assert column(browser, table, 3) == ["80.1 ± 0.5", "10.4 ± 0.5", "9.5"]
    assert heading.get_attribute("aria-sort") == "descending"
    browser.find_element(By.CSS_SELECTOR, f"{table} th[data-column='0'] button").click()
    assert column(browser, table, 0) == ["ACE", "ER", "ER"]
    assert heading.get_attribute("aria-sort") is None


def test_rows_are_filtered_by_text_and_verdict(show):
    browser = show("mini/index.html")
    table, told = "#table1 table.filtered", browser.find_element(By.CSS_SELECTOR, ".filter output")
    verdict = browser.find_element(By.NAME, "verdict")
    verdict.find_element(By.CSS_SELECTOR, "option[value='same']").click()
    (text,) = column(browser, table, 7)
    assert "same, within" in text
    assert told.text == "1 of 6 rows"
    assert not browser.find_element(By.ID, "figure1").is_displayed()
    browser.find_element(By.NAME, "text").send_keys("ace")
    assert column(browser, table, 0) == ["ACE"]
    browser.find_element(By.NAME, "text").clear()
    verdict.find_element(By.CSS_SELECTOR, "option[value='']").click()
    assert len(column(browser, table, 0)) == 3
    assert browser.find_element(By.ID, "figure1").is_displayed()


def test_rows_without_a_verdict_are_folded_away_and_counted(show):
    browser = show("mini/index.html")
    folded = browser.find_element(By.CSS_SELECTOR, "#table1 details.folded")
    assert folded.text == "1 not comparable: 1 not printed"
    assert column(browser, "#table1 details.folded table", 0) == []
    folded.find_element(By.TAG_NAME, "summary").click()
    assert column(browser, "#table1 details.folded table", 0) == ["ACE"]


def test_a_filter_opens_what_is_folded_where_it_fits(show):
    browser = show("mini/index.html")
    browser.find_element(By.CSS_SELECTOR, "select option[value='not comparable']").click()
    assert column(browser, "#table1 details.folded table", 0) == ["ACE"]
    assert column(browser, "#table1 table.filtered", 0) == ["ACE"]
    browser.find_element(By.CSS_SELECTOR, "select option[value='same']").click()
    assert not browser.find_element(By.CSS_SELECTOR, "#table1 details.folded").is_displayed()
    browser.find_element(By.CSS_SELECTOR, "select option[value='']").click()
    assert browser.find_element(By.CSS_SELECTOR, "#table1 details.folded").is_displayed()
    assert column(browser, "#table1 details.folded table", 0) == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_verdict_is_in_sight_however_narrow_the_page(show, size):
    browser = show("mini/index.html", size)
    for cell in browser.find_elements(By.CSS_SELECTOR, "table.filtered td:last-child"):
        if cell.is_displayed():
            assert cell.rect["x"] >= 0
            assert cell.rect["x"] + cell.rect["width"] <= size[0]


def test_a_figures_caption_stands_below_it(show, folder):
    caption = read_caption(folder.parent / "targets/mini/figure1.caption.md")
    for size in (DESKTOP, PHONE):
        shown = show("mini/index.html", size).find_element(By.CSS_SELECTOR, "#figure1 figcaption").text
        assert shown.startswith(caption.text)
        assert all(note in shown for note in caption.notes)


def test_the_first_page_says_who_wrote_a_paper_how_much_is_covered_and_what_it_took(show):
    browser = show("index.html")
    (row,) = browser.find_elements(By.CSS_SELECTOR, "[aria-label='Papers'] tbody tr")
    paper, numbers, claims, runs, hours, last = (cell.text for cell in row.find_elements(By.XPATH, "./*"))
    assert paper == "mini: A paper of two methods\nA. Author, 2020, the paper"
    assert row.find_element(By.LINK_TEXT, "the paper").get_attribute("href") == LINK
    assert numbers.splitlines()[0] == "3 of 3 compared"
    assert claims.splitlines()[0] == "1 of 2 decided"
    assert int(runs) >= 4
    assert re.fullmatch(r"\d+\.\d+", hours)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", last)


def test_a_numbers_page_has_its_runs_one_by_one_and_the_commands(show, folder):
    browser = show("mini/table1.html")
    again = browser.find_element(By.CSS_SELECTOR, "main > p .command").text
    assert again == "snakemake results/mini/targets/mini/table1.csv --cores --force --config hours=0"
    section = browser.find_element(By.ID, "ACE-MNIST")
    measured = list(csv.DictReader((folder.parent / "metrics/mini/table1.csv").open(encoding="utf-8")))
    table = section.find_element(By.CSS_SELECTOR, "[aria-label^='Run by run'] table")
    rows = [row.find_elements(By.XPATH, "./*") for row in table.find_elements(By.CSS_SELECTOR, "tbody tr")]
    assert [seed.text for seed, *_ in rows] == ["0", "1"]
    for seed, *values in rows:
        mine = [line for line in measured if (line["learner"], line["seed"]) == ("ace", seed.text)]
        wanted = [float(line["value"]) for line in mine if not line["metric"].startswith("chance_")]
        assert [float(value.text) for value in values] == pytest.approx(wanted, rel=1e-5)
    runs = sorted(folder.parent.glob("runs/mnist/*/ace-*/seed?.json"))
    command = section.find_element(By.CSS_SELECTOR, "details .command").get_attribute("textContent")
    assert command.split()[0] == "snakemake"
    assert all(str(run.relative_to(folder.parents[2])) in command for run in runs)


def test_a_numbers_page_has_its_distance_and_its_streams_before_any_checksum(show):
    section = show("mini/table1.html").find_element(By.ID, "ER-MNIST")
    first, distance = section.text, section.find_element(By.CSS_SELECTOR, ":scope > p").text
    assert "reported 80.1 ± 0.5: difference " in distance
    assert "Streams: mnist/stf-0.05-n30, seeds 0, 1" in first
    text = section.get_attribute("textContent")
    assert 0 < text.index("Streams:") < text.index("SHA-256")


def test_each_row_of_a_table_has_an_address(show, folder):
    rows = show("mini/index.html").find_elements(By.CSS_SELECTOR, "#table1 table:not(.pooled) tbody tr")
    assert rows
    for row in rows:
        assert row.find_element(By.CSS_SELECTOR, "th a").get_attribute("href").endswith(f"#{row.get_attribute('id')}")


def test_rows_without_a_run_are_set_apart_and_an_address_is_given_once():
    rows = [("ER", "39.8", "–"), ("MIR", "–", "N.A."), ("ER", "1", "2"), ("GR", "N.A.", "N.A.")]
    cells = "".join(f"<tr><th>{name}</th>{''.join(f'<td>{c}</td>' for c in more)}</tr>" for name, *more in rows)
    tree = ElementTree.fromstring(f'<table class="sortable"><tbody>{cells}</tbody></table>')
    table = site.HtmlTable("T", "C", tree, [])
    table.remove_unrun()
    table.anchor("table1", set())
    assert table.unrun == ["MIR"]
    assert [row.get("id") for row in tree.iter("tr")] == ["table1.ER", "table1.ER_", "table1.GR"]


def test_a_row_with_a_number_stays_whatever_is_said_below_the_number(tmp_path, monkeypatch):
    """ER has a number, compared, on one of two data sets; MIR has none at all."""
    numbers = {"E": ["39.8 ± 2.8 (5)", "–", "2.1"], "C": ["–", "–", "10.0"]}
    body = pd.DataFrame({"Method": ["ER", "MIR", "Random guess"], **numbers})
    body.columns = pd.MultiIndex.from_tuples([("Method", ""), ("EMNIST", "Acc."), ("CIFAR-10", "Acc.")])
    monkeypatch.chdir(tmp_path)
    target = Target("paper", "mini", "table1", {"names": {"acc": "Acc."}}, range(5))
    write_table(Table("Table 1", "Means.", body, bold_in(body), body), target.stem)
    line = {"row": "ER", "column": "EMNIST", "metric": "acc", "verdict": "same", "texts": {"reported": "40.1 ± 1"}}
    (table,) = site._tables(target, {}, [line], set())
    assert table.unrun == ["MIR"]
    er, guess = ([site._text(cell) for cell in row] for row in table.tree.findall("tbody/tr"))
    assert guess == ["Random guess", "2.1", "10.0"]
    assert er[0] == "ER"
    assert er[1].startswith("39.8 ± 2.8 (5)")
    assert "40.1 ± 1" in er[1].replace(site.UNBROKEN, " ")


@pytest.mark.parametrize(
    ("mean", "spread", "text"),
    [
        ("39.77", "2.816768148", "39.8 ± 2.8"),
        ("39.77", "12.3", "40 ± 12"),
        ("0.51234", "0.00456", "0.5123 ± 0.0046"),
        ("39.7712", "0", "39.771"),
        ("39.7712", "", "39.771"),
        ("", "", "–"),
    ],
)
def test_a_mean_has_the_digits_of_its_spread(mean, spread, text):
    assert site.rounded(mean, spread) == text


def test_without_scripts_all_tables_are_there(show):
    browser = show("mini/index.html", scripts=False)
    assert len(browser.find_elements(By.TAG_NAME, "button")) == 0
    assert not browser.find_element(By.CSS_SELECTOR, ".filter").is_displayed()
    for table in ("#claims table", "#table1 table", "#table1 table.filtered", "#desiderata table", "#cost table"):
        assert browser.find_element(By.CSS_SELECTOR, table).is_displayed(), table
    assert browser.find_element(By.CSS_SELECTOR, "#figure1 img").is_displayed()


def test_a_verdict_is_told_by_a_word_too(show):
    browser = show("mini/index.html")
    browser.execute_script("for (const closed of document.querySelectorAll('details')) closed.open = true")
    cells = browser.find_elements(By.CSS_SELECTOR, "td[data-verdict], .verdict")
    said = {cell.get_attribute("data-verdict") for cell in cells}
    assert said >= {"same", "near", "differs", "not comparable", "undecided", "supported"}
    for cell in cells:
        labels = [each.get_attribute("aria-label") for each in cell.find_elements(By.CSS_SELECTOR, "[aria-label]")]
        verdict = cell.get_attribute("data-verdict")
        assert verdict in cell.text or verdict in labels
        assert site.SIGNS[verdict] in cell.text
    colours = {
        cell.get_attribute("data-verdict"): cell.value_of_css_property("background-color")
        for cell in browser.find_elements(By.CSS_SELECTOR, "#table1 td[data-verdict]")
    }
    assert len(set(colours.values())) == 4


def test_claims_are_quoted_and_counted(show):
    browser = show("mini/index.html")
    assert column(browser, "#claims table", 0) == ["ace_better\nsection 1", "both_guess\nsection 2"]
    assert "ACE is <b>better</b> & simpler" in column(browser, "#claims table", 1)[0]
    test = column(browser, "#claims table", 2)[1].splitlines()
    assert test[1:3] == ["CHOICE: margin 5, bound 10", "Printed: 9.5 & 10.4."]
    assert "[" in column(browser, "#claims table", 3)[0]
    section = browser.find_element(By.ID, "claims").text
    assert section.splitlines()[0].endswith("†")
    assert "Holm’s correction" in section
    assert "† Stand-in data" in section
    browser = show("index.html")
    (counted,) = column(browser, "[aria-label='Papers'] table", 2)
    assert "1 supported" in counted
    assert "1 undecided" in counted


def test_on_paper_controls_are_gone_and_the_page_is_white(show):
    browser = show("mini/index.html", scheme="dark", media="print")
    for hidden in ("header", ".filter", ".skip"):
        assert not browser.find_element(By.CSS_SELECTOR, hidden).is_displayed(), hidden
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")


def test_the_audit_knows_the_report(built, tmp_path):
    copy = built.copy(tmp_path / "project")
    page = copy.folder / "results/mini/report/mini/table1.html"
    assert "results/mini/report" not in copy.clpapers("audit").stdout
    page.write_text(page.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert re.search(r"failure: results/mini/report/mini/table1.html: edited", copy.clpapers("audit").stdout)


def test_a_run_that_was_edited_is_named(built, tmp_path):
    copy = built.copy(tmp_path / "project")
    (run,) = copy.folder.glob("results/mini/runs/mnist/*/ace-*/seed0.json")
    run.write_text(run.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert copy.clpapers("report", "--out", "results/mini/report/index.html").returncode == 0
    text = (copy.folder / "results/mini/report/mini/table1.html").read_text(encoding="utf-8")
    assert "NOT AS RECORDED" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "results/mini/targets/index.html"], "results/mini/targets/index.html: no job of config/ makes it"),
        (["--out", "results/mini/report/index.html", "--papers", "maxi"], "'maxi' is not one of"),
        (["--out", "results/smoke/report/index.html", "--papers", "mini"], "table1.csv: no such file"),
    ],
)
def test_what_cannot_be_reported_is_refused_in_one_line(built, arguments, said):
    done = built.clpapers("report", *arguments)
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 1)
    assert said in done.stdout


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({}, ""),
        ({"authors": "A & B"}, "A &amp; B"),
        ({"authors": "A", "year": 2020}, "A, 2020"),
        ({"link": LINK}, f'<a href="{LINK}" rel="external">the paper</a>'),
        ({"year": 2020, "link": LINK}, f'2020, <a href="{LINK}" rel="external">the paper</a>'),
    ],
)
def test_of_a_paper_is_told_what_its_file_says(about, said):
    parts = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=parts, autoescape=True, undefined=jinja2.StrictUndefined)
    page = environment.from_string("{% import 'parts.html' as parts %}{{ parts.written_by(about) }}")
    assert page.render(about=about).strip() == said


@pytest.mark.parametrize(("count", "text"), [(2e6, "2 MB"), (9.99e8, "999 MB"), (3.21e9, "3.2 GB")])
def test_sizes(count, text):
    assert site.size(count) == text


def test_snakemakes_own_report_has_captions_and_labels(built, tmp_path):
    done = built.snakemake("results/mini/report/index.html", "--report", str(tmp_path / "report.zip"))
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        assert {Path(name).name for name in archive.namelist() if "/data/raw/" in name} == {
            *("table1.html", "table2.html", "figure1.svg", "claims.html")
        }
        page = archive.read("report/report.html").decode()
    assert "The table or figure itself says which data are stand-ins" in page
    assert '"labels": {"target": "figure1", "scale": "mini"}' in page

"""The site of a default build as a reader sees it: every number at hand, nothing covered or cut, on both screens.

A number is in sight, or one click on a summary that is in sight away.
"""

import json
import math
import re

import pandas as pd
import pytest
from browsing import DESKTOP, PHONE, grades_of, resize, searched, unfold

ROWS = """
const seen = (element) => element.checkVisibility() && element.getClientRects().length > 0;
const found = {};
for (const fold of document.querySelectorAll("details")) {
  if (!seen(fold.querySelector("summary"))) throw new Error("a summary is out of sight");
  fold.open = true;
}
const ITEMS = "article section > ul > li, article section > details > ul > li";
for (const row of document.querySelectorAll(`article section tbody tr, ${ITEMS}`)) {
  if (!seen(row)) continue;
  const place = row.closest("section").id;
  (found[place] ??= []).push(row.cells ? [...row.cells].map((cell) => cell.innerText.trim()) : [row.innerText]);
}
return found;
"""
LAYOUT = """
const root = document.documentElement, out = {wide: root.scrollWidth - root.clientWidth, uncued: [], covered: []};
const boxes = [...document.querySelectorAll("article *")].filter((each) => each.checkVisibility());
for (const box of boxes) {
  const style = getComputedStyle(box);
  if (style.display === "inline" || box.scrollWidth <= box.clientWidth + 1) continue;
  if (!["auto", "scroll", "hidden"].includes(style.overflowX) || box.matches("code, select, input")) continue;
  if (style.overflowX === "hidden" || !style.backgroundImage.includes("gradient") || box.tabIndex < 0)
    out.uncued.push(box.getAttribute("aria-label") ?? box.className);
}
const words = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const range = document.createRange();
const HIDDEN = "thead, script, select, header, dialog, .visually-hidden, .skip-link, .bd-sidebar-primary, "
  + ".bd-sidebar-secondary";
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  if (!node.textContent.trim() || !parent.checkVisibility() || parent.closest(HIDDEN)) continue;
  const scroller = parent.closest(".pst-scrollable-table-container")?.getBoundingClientRect();
  range.selectNodeContents(node);
  for (const {left, right, top, bottom} of range.getClientRects())
    if (right - left > 1 && (!scroller || left < scroller.right))
      words.push({left, right, top, bottom, parent, text: node.textContent.trim()});
}
const above = boxes.filter((each) => ["sticky", "fixed", "absolute"].includes(getComputedStyle(each).position))
  .map((each) => ({...each.getBoundingClientRect().toJSON(), parent: each, text: "a box that stays in place"}));
const all = [...words, ...above].sort((a, b) => a.top - b.top);
const cross = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.4 * Math.min(a.bottom - a.top, b.bottom - b.top);
for (let i = 0; i < all.length; i++)
  for (let j = i + 1; j < all.length && all[j].top < all[i].bottom; j++)
    if (cross(all[i], all[j]) && !all[i].parent.contains(all[j].parent) && !all[j].parent.contains(all[i].parent))
      out.covered.push([all[i].text.slice(0, 40), all[j].text.slice(0, 40)]);
return out;
"""
PICTURE = """
const root = document.documentElement, page = root.getBoundingClientRect();
const texts = [...root.querySelectorAll('g[id^="text_"]')].map((each) => each.getBoundingClientRect());
const beyond = texts.filter((box) => box.width && (box.left < page.left - 1 || box.right > page.right + 1
  || box.top < page.top - 1 || box.bottom > page.bottom + 1)).length;
const look = (entry) => [...entry.querySelectorAll("path, use")].map((each) =>
  [each.tagName, each.getAttribute("style"), each.getAttribute("xlink:href")].join(" ")).join("|");
const legends = [...root.querySelectorAll('g[id^="legend_"]')].map((legend) =>
  [...legend.querySelectorAll('g[id^="line2d_"], g[id^="patch_"]')].map(look).filter(Boolean));
return {texts: texts.length, beyond, legends};
"""
EMPTY = """
return [...document.querySelectorAll("article table")].flatMap((table) => {
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
  const empty = rows[0].map((_, i) => i > 0 && rows.every((row) => ["", "–", "N.A."].includes(row[i])));
  const count = empty.filter(Boolean).length;
  return count && count < rows[0].length - 1 ? [table.rows[0].innerText] : [];
});
"""
PICTURES = """
return [...document.querySelectorAll("article img[src$='.svg']")]
  .map((each) => [each.src.split("/").pop(), each.getBoundingClientRect().width]);
"""
SCREENS, OF_AGEM = 18, 15  # of a desktop, at most; a page has up to fourteen figures
LEGIBLE = 9  # pixels of the smallest label
NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?(?:e[−-]?\d+)?")


@pytest.fixture(scope="module")
def pages(built_project):
    """By paper, its page of the site."""
    papers = [file.stem for file in built_project.glob("config/papers/*.yaml")]
    return {paper: built_project / f"results/paper/report/reproduction/{paper}.html" for paper in papers}


def printed(texts):
    """The numbers of some texts, each with half a unit of its last digit."""
    for text in NUMBER.findall(" ".join(texts).replace("−", "-")):
        plain = text.replace(",", "").partition("e")[0]
        decimals = len(plain.partition(".")[2])
        exponent = int(text.partition("e")[2] or 0)
        yield float(text.replace(",", "")), 0.5 * 10.0 ** (exponent - decimals)


def shows(rows, names, values):
    """Whether one of a section's visible rows has all the names, and all the values to some digit (or ∞)."""
    for row in rows:
        text = " ".join(" ".join(row).split())
        if all(" ".join(str(name).split()) in text for name in names):
            found = [*printed(row)]
            if all(
                ("∞" in text or "OoM" in text)
                if math.isinf(value)
                else any(abs(number - value) <= unit * 1.01 + 1e-9 for number, unit in found)
                for value in values
            ):
                return True
    return False


def key_of(text):
    """A section's address without signs, which generators of pages replace each in its way."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def title_of(record):
    return json.loads(record.read_text(encoding="utf-8"))["target"]["title"]


def numbers(folder):
    """(section, names, values) of what one row of a page has to show, for all that has a number in a paper's CSVs.

    A table's row has all of its numbers; where several tables share a CSV, a metric's in all columns.
    """
    for file in sorted(folder.glob("*.csv")):
        lines = pd.read_csv(file, keep_default_na=False, na_values=[""])
        name, _, kind = file.stem.partition(".")
        section = name if name == "claims" else key_of(title_of(file.with_name(f"{name}.record.json")))
        if kind == "reported":
            yield from ((section, [row], [value]) for row, value in zip(lines["row"], lines["ours"]))
        elif kind == "paired":
            named = zip(lines["first"], lines["second"], lines["difference"])
            yield from ((section, names, [value]) for *names, value in named)
        elif name == "claims":
            said = (statement.rstrip(".") for statement in lines["statement"])
            yield from (("claims", [each], [value]) for each, value in zip(said, lines["effect"]))
        elif "mean" in lines:
            target = json.loads(file.with_suffix(".record.json").read_text(encoding="utf-8"))["target"]
            shown = lines["metric"].isin(target.get("metrics", lines["metric"]))  # no number that formulas alone read
            key = ["row"] if target["render"] == "results_table" else ["row", "metric"]
            for (row, *_), group in lines[shown].dropna(subset=["mean"]).groupby(key, sort=False):
                yield section, [row], [*group["mean"]]
        elif "total" in lines:
            yield from ((section, [], [total]) for total in lines["total"].unique())


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_each_row_of_a_csv_that_has_a_number_is_at_hand_on_its_page(built_project, pages, browser, size):
    resize(browser, size)
    hidden = []
    for paper, page in pages.items():
        browser.get(page.as_uri())
        shown = {key_of(place): rows for place, rows in browser.execute_script(ROWS).items()}
        asked = [
            each for each in numbers(built_project / "results/paper/targets" / paper) if not pd.isna(each[2]).any()
        ]
        assert asked
        hidden += [(paper, *each) for each in asked if not shows(shown.get(each[0], ()), *each[1:])]
    assert hidden == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_nothing_scrolls_sideways_unsaid_and_no_text_is_covered(pages, browser, size):
    resize(browser, size)
    faults = {}
    for page in (next(iter(pages.values())).parents[1] / "index.html", *pages.values()):
        browser.get(page.as_uri())
        unfold(browser)
        faults[page.stem] = browser.execute_script(LAYOUT)
    assert faults == {page: {"wide": 0, "uncued": [], "covered": []} for page in faults}


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_each_grade_is_in_sight_without_scrolling_sideways(pages, browser, size):
    resize(browser, size)
    for paper, page in pages.items():
        browser.get(page.as_uri())
        unfold(browser)
        found = grades_of(browser)
        assert found or paper == "streaming"  # of which no number is compared
        assert [grade for grade in found if not grade["seen"]] == [], paper


def test_no_page_of_a_paper_is_endless_and_no_column_of_a_table_is_empty(pages, browser):
    resize(browser, DESKTOP)
    for paper, page in pages.items():
        browser.get(page.as_uri())
        screens = browser.execute_script("return document.documentElement.scrollHeight") / DESKTOP[1]
        assert screens <= (OF_AGEM if paper == "agem" else SCREENS), paper
        assert browser.execute_script(EMPTY) == [], paper


@pytest.mark.parametrize("query", ["own method", "streams", "CBRS", "label smoothing"])
def test_search_finds_titles_then_headings_then_text(pages, browser, query):
    folder = next(iter(pages.values())).parents[1]
    resize(browser, DESKTOP)
    found = searched(browser, folder, query)
    assert [tier for _, tier in found] == sorted((tier for _, tier in found), reverse=True)
    words = re.compile(r"(?<![^\W_])" + query.replace(" ", r"[\W_]+") + r"(?![^\W_])", re.IGNORECASE)
    for page in folder.rglob("[!w]*.html"):
        text = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        if words.search(re.sub("<[^>]*>", "", text)):
            assert str(page.relative_to(folder)) in dict(found)
    if first := {"own method": "own_method.html", "streams": "streams.html"}.get(query):
        assert found[0][0] == first


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_no_label_of_a_picture_is_smaller_than_nine_pixels(pages, browser, size):
    resize(browser, size)
    site = next(iter(pages.values())).parents[1]
    measured = []
    for page in (site / "index.html", site / "gallery.html", *pages.values()):
        browser.get(page.as_uri())
        unfold(browser)
        for picture, width in browser.execute_script(PICTURES):
            text = (site / "_images" / picture).read_text(encoding="utf-8")
            sizes = [100 * float(each) for each in re.findall(r"translate\([^)]*\)[^>\"]* scale\(([\d.]+) -", text)]
            if 'id="figure_1"' in text:  # one of ours, whose text is drawn at 100 units a point
                units = float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])
                measured.append((round(min(sizes) * width / units, 2), page.stem, picture))
    assert len(measured) > len(pages)
    assert [each for each in measured if each[0] < LEGIBLE] == []


def test_no_text_of_a_picture_leaves_it_and_no_two_entries_of_a_legend_look_alike(pages, browser):
    pictures = sorted(next(iter(pages.values())).parents[1].glob("_images/*.svg"))
    pictures = [picture for picture in pictures if 'id="figure_1"' in picture.read_text(encoding="utf-8")]
    assert len(pictures) > len(pages)
    legends = 0
    for picture in pictures:
        browser.get(picture.as_uri())
        found = browser.execute_script(PICTURE)
        assert found["texts"], picture  # they are measured at all
        assert found["beyond"] == 0, picture
        for entries in found["legends"]:
            legends += 1
            assert len(set(entries)) == len(entries), picture
    assert legends

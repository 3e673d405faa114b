"""A newcomer's own method: each command that the one before prints, until its page on the site."""

import csv
import re

import pytest
from browsing import DESKTOP, PHONE, resize
from selenium.webdriver.common.by import By

DER = "examples/stacked/der_pp.py"  # three runs of it are published


@pytest.fixture(scope="module")
def user(copied, installed, tmp_path_factory):
    home = tmp_path_factory.mktemp("newcomer")
    return installed(copied(home / "clpapers"), home)


def test_each_command_leads_to_the_next_until_a_page(user):
    at_home = user._replace(folder=user.home)
    *_, told = at_home.ok("clpapers new method mine").splitlines()
    said = at_home.ok(re.search(r"clpapers try .*", told)[0]).splitlines()
    assert re.search(r"mine\.py: a row in (\d+) of the \1 tables and figures", said[0]), said
    upcoming, build = said[-2:]
    assert "runs for methods from outside" in user.ok(upcoming)
    *_, last = user.ok(build.replace("hours=2", "hours=0")).splitlines()
    page = re.fullmatch(r"mine: this build trained 0 of its runs; 0 of [\d,]+ are there; its page: (\S+)", last)[1]
    text = (user.folder / page).read_text(encoding="utf-8")
    assert "It has no run yet." in text
    assert "What more would cost and decide" in text


def test_a_build_without_a_site_says_how_to_build_the_page(user):
    *_, last = user.ok(f"snakemake stf --cores --config methods=[{DER}] hours=0").splitlines()
    command = re.search(r"0 of its runs; 3 of [\d,]+ are there; to build its page: (.*)", last)[1]
    *_, last = user.ok(command).splitlines()
    assert last.endswith("its page: results/paper/report/methods/der_pp.html")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_its_page_has_its_place_and_differences_on_both_screens(user, browser, size):
    resize(browser, size)
    browser.get((user.folder / "results/paper/report/methods/der_pp.html").as_uri())
    rows = [
        [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
        for row in browser.find_elements(By.CSS_SELECTOR, "article tbody tr")
    ]
    assert ["1 of 7", "stf/table1", "CIFAR-10", "Fin. Acc."] in [row[:4] for row in rows]
    for fold in browser.find_elements(By.CSS_SELECTOR, "article details"):
        fold.find_element(By.TAG_NAME, "summary").click()
    shown = browser.find_element(By.TAG_NAME, "article").text.replace("−", "-")
    with (user.folder / "results/paper/targets/stf/table1.paired.csv").open(encoding="utf-8", newline="") as lines:
        own = [line for line in csv.DictReader(lines) if line["second"] == "der_pp §" and line["difference"]]
    assert len(own) == 12
    for line in own:
        assert f"{-float(line['difference']):+z.2f} [" in shown, line
    pictures = browser.find_elements(By.CSS_SELECTOR, "article img")
    assert len(pictures) == 2
    for picture in pictures:
        assert browser.execute_script("return arguments[0].naturalWidth", picture) > 0
        assert picture.rect["x"] + picture.rect["width"] <= size[0]
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(wide) <= 0
    assert "results/paper/imported/" in shown or "results/paper/runs/" in shown

"""The files: they parse back, escape what must be escaped, show every mark, and repeat byte for byte."""

import dataclasses
import re
from html.parser import HTMLParser

import by_hand
import pandas as pd
import pytest
from rendering import figure

from clpapers.evidence import comparison
from clpapers.targets import curves, formats, results_table
from clpapers.targets.figure import FIGURE_SUFFIXES, write_figure
from clpapers.targets.markdown import markdown, unescaped
from clpapers.targets.table import Table


@pytest.fixture
def learnt(learnt):
    """ACE's values in reverse order: its differences to ER's vary then, so that a test can call it the best."""
    return learnt.assign(seed=learnt["seed"].where(learnt["learner"] != "ace", 2 - learnt["seed"]))


@pytest.fixture
def table(table_target, learnt, reduced, tmp_path):
    """A results table with its comparison below it."""
    file = tmp_path / "printed.csv"
    file.write_text(
        "paper,target,row,column,metric,value,spread,spread_kind,note\n"
        "stf,table1,ER,EMNIST,final_accuracy,80.1,0.5,ci95_halfwidth_20_runs,\n"
    )
    compared = comparison.compare(table_target, learnt, comparison.read_reported(file, "stf", "table1"), reduced)
    rendered = results_table.render(table_target, learnt, reduced)
    return comparison.attach(rendered, table_target, learnt, compared, reduced)


def odd(*cells):
    body = pd.DataFrame([cells], columns=[f"c{i}" for i in range(len(cells))])
    return Table("T", "C", body, body.map(lambda _: False), body)


class Page(HTMLParser):
    """Every start tag with its attributes, and every cell's text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


def test_what_an_experiment_declares_stands_below_it_in_every_text(table_target, learnt, real):
    line = "Conditions of Farquhar & Gal: shared output head: no (a head a task)."
    made = results_table.render(table_target, learnt, dataclasses.replace(real, conditions=line))
    assert formats.to_markdown(made).endswith(f"\n\n{line}\n")
    assert line.replace("&", r"\&") in formats.to_latex(made, "t")
    assert f'<p class="note">{line.replace("&", "&amp;")}</p>' in formats.to_html(made)


def test_a_table_has_four_files_which_repeat_byte_for_byte_and_its_numbers_read_back(table, tmp_path):
    first, second = (formats.write_table(table, tmp_path / run / "stf" / "t") for run in "ab")
    assert {*(tmp_path / "a/stf").iterdir()} == {*first}
    assert [path.suffix for path in first] == [".csv", ".md", ".tex", ".html"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    back = pd.read_csv(first[0], keep_default_na=False)
    pd.testing.assert_frame_equal(back, table.data, check_dtype=False, rtol=1e-9)
    assert r"\label{tab:stf-t}" in first[2].read_text()  # by the paper, in which all labels stand


def test_markdown_has_both_tables_with_all_cells(table):
    text = formats.to_markdown(table)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == (2 + 2) + (2 + 1)
    assert "EMNIST†‡ Fin. Acc." in lines[0]
    for told in ("**90.0 ± 2.5**", "† Stand-in data", "‡ Reduced scale"):
        assert told in text


def test_no_reader_of_markdown_finds_markup_in_a_text():
    """Nor an entity that stands for it, nor a link; a plain & and the brackets of an interval stay."""
    cells = ("<img src=x onerror=y>", "&lt;b&gt;", "[a](javascript:b)", "a & b [1, 2]", "1\n2", "a|*c*_e")
    text = formats.to_markdown(odd(*cells))
    assert "<" not in text
    shown = (
        r"&lt;img src=x onerror=y>",
        "&amp;lt;b&amp;gt;",
        r"[a]\(javascript:b)",
        "a & b [1, 2]",
        "1 2",
        r"a\|\*c\*\_e",
    )
    assert [cell for cell in shown if f"| {cell} " not in text] == []


def test_html_is_well_formed_and_accessible_and_escapes(table):
    page = Page(formats.to_html(table))
    assert page.open == []
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") == 2
    assert ("html", {"lang": "en"}) in page.tags
    assert {attributes.get("scope") for tag, attributes in page.tags if tag == "th"} == {"col", "row"}
    assert not {"script", "link", "img"} & set(tags)
    assert {"EMNIST†‡", "90.0 ± 2.5"} <= set(page.cells)
    escaped = Page(formats.to_html(odd("a", "<script>x & y")))
    assert "<script>x & y" in escaped.cells
    assert "script" not in [tag for tag, _ in escaped.tags]


def test_html_column_groups_have_their_scope(table_target, learnt, real):
    table_target["metrics"] = ["final_accuracy", "online_accuracy"]
    both = pd.concat([learnt, learnt.assign(metric="online_accuracy")])
    page = Page(formats.to_html(results_table.render(table_target, both, real)))
    groups = [attributes for _, attributes in page.tags if attributes.get("scope") == "colgroup"]
    assert groups == [{"scope": "colgroup", "colspan": "2"}] * 2


def test_headings_of_one_level_in_every_format(table_target, learnt, real):
    data = learnt[learnt["dataset"] == "emnist"].assign(oracle="sp5")
    target = table_target | {"columns": "oracle", "names": table_target["names"] | {"sp5": "Sp=5"}}
    alone = results_table.render(target, data, real)
    assert "| Method | Sp=5 " in re.sub(" +", " ", formats.to_markdown(alone))
    assert Page(formats.to_html(alone)).cells[:2] == ["Method", "Sp=5"]
    assert "Method & Sp=5 \\\\\n\\midrule" in formats.to_latex(alone, "t")


def test_latex_table(table):
    text = formats.to_latex(table, "table1")
    assert text.isascii()
    assert text.count("{") == text.count("}")
    for told in (r"A \& B$^\ddagger$", r"in \%.", r"EMNIST$^\dagger$$^\ddagger$", r"\textbf{90.0 $\pm$ 2.5}"):
        assert told in text
    commands = [rf"\{place}rule" for place in ("top", "mid", "bottom")]
    commands += [rf"\{end}{{{what}}}" for end in ("begin", "end") for what in ("table", "tabular")]
    assert {text.count(command) for command in commands} == {1}
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {2}


@pytest.mark.parametrize(
    ("title", "prose", "caption"),
    [
        ("Table 12: Both, at once‡", {}, r"Both, at once$^\ddagger$ (Table 12 of the paper)"),
        ("Table 1 on CIFAR-100: Ω_all", {}, r"Table 1 on CIFAR-100: $\Omega$\_all"),
        ("Table 3: Claims", {"Method": 0.5}, "Claims (Table 3 of the paper)"),
    ],
)
def test_latex_numbers_a_table_itself(table, title, prose, caption):
    text = formats.to_latex(dataclasses.replace(table, title=title, prose=prose), "t")
    assert re.findall(r"\\caption\{(.*?)\. ", text) == [caption]


def test_figures_repeat_byte_for_byte_with_their_fonts_inside(learnt, reduced, tmp_path):
    _, target, data = figure("curves", learnt)
    first, second = (write_figure(curves.render(target, data, reduced), tmp_path / run / "f") for run in "ab")
    assert [path.suffix for path in first] == list(FIGURE_SUFFIXES)
    pdf, svg, png = contents = [path.read_bytes() for path in first]
    assert contents == [path.read_bytes() for path in second]
    assert b"/FontFile2" in pdf
    assert b"Date" not in pdf
    assert b"<dc:date>" not in svg
    assert b"<text" not in svg
    assert png.startswith(b"\x89PNG")


def names(text):
    """A text as Markdown, and as that is read."""
    return markdown(text), unescaped(markdown(text))


test_by_hand = by_hand.tests(globals())

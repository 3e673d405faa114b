"""The caption beside a figure: it is read as it was written, and a paper can take it in."""

import re
from dataclasses import replace
from pathlib import Path

import rendering
from hypothesis import given
from hypothesis import strategies as st

from clpapers.targets import boundary_trace, figure
from clpapers.targets.caption import Caption, read_caption

PARAGRAPHS = st.text("ab|*_`<\\.†§ ", min_size=1).map(str.strip).filter(bool)
TITLES = PARAGRAPHS.filter(lambda title: ". " not in title and not title.endswith("."))


@given(TITLES, PARAGRAPHS, st.lists(PARAGRAPHS), st.lists(PARAGRAPHS))
def test_it_is_read_as_it_was_written(tmp_path_factory, title, text, notes, sources):
    file = tmp_path_factory.mktemp("caption") / "figure1.caption.md"
    file.write_text(Caption(title, text, notes, sources).to_markdown(), encoding="utf-8")
    assert read_caption(file) == Caption(title, text, [*notes, *sources])


def test_a_float_has_the_picture_and_its_marks_and_keeps_sources_as_comments():
    caption = Caption("Figure 2: A & B†", "Up to 5 runs.", ["† Stand-in data."], ["3 of 5 runs so far."])
    lines = caption.to_latex(Path("results/paper/targets/stf/figure2"), wide=True).splitlines()
    assert r"\begin{figure*}" in lines
    assert r"\includegraphics{stf/figure2.pdf}" in lines
    told = r"A \& B$^\dagger$ (Figure 2 of the paper). Up to 5 runs. $^\dagger$ Stand-in data."
    assert rf"\caption{{{told}}}" in lines
    assert r"\label{fig:stf-figure2}" in lines
    assert lines[-1] == "% 3 of 5 runs so far."
    assert r"\begin{figure}" in caption.to_latex(Path("stf/figure2"), wide=False)


def test_it_holds_what_is_not_in_the_picture(learnt, reduced, tmp_path):
    _, target, data = rendering.figure("boundary_trace", learnt)
    drawn = boundary_trace.render(target, data, reduced)
    named = target | {"title": "Figure 1: Lines", "caption": "Of {seeds} runs."}
    figure.write_caption(drawn, named, replace(reduced, conditions="Conditions: yes."), tmp_path / "figure1")
    caption = read_caption(tmp_path / "figure1.caption.md")
    assert (caption.title, caption.text) == ("Figure 1: Lines‡", "Of 3 runs.")
    assert caption.notes[-1] == "Conditions: yes."
    assert any(note.startswith("‡ Reduced scale") for note in caption.notes)
    assert any(note.startswith("Every threshold from 2 to 4.29 ") for note in caption.notes)
    tex = (tmp_path / "figure1.caption.tex").read_text()
    assert re.search(r"^% Conditions: yes\.$", tex, re.MULTILINE)

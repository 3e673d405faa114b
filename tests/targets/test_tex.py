"""Text in LaTeX: nothing in it is special, each character is shown as it is, and what has no form is refused."""

import re
import shutil
import subprocess

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clpapers.targets import formats
from clpapers.targets.table import Table
from clpapers.targets.tex import JOIN, TABLE, latex

pytestmark = pytest.mark.slow  # TeX runs
ODD = ["p < 0.05, a > b, x|y", "[ER]", "*", "a--b", "''", "10⁻⁶", "β = 0.5", "Fernàndez Żółw č ő", "?`", '"q"', "½ µs"]
needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX here")


def test_nothing_special_is_left_unescaped():
    """Each character alone: our own mathematics and commands may use what is special, and nothing else does."""
    for character, told in TABLE.items():
        ours = re.sub(r"\$[^$]*\$|\\[A-Za-z]+(\{\})?|\\[&%$#_{},-]|\{(.|'')?\}", "", told)
        assert ours.isascii(), character
        assert told in ("~", "`", "``", "?`", "!`") or not set(ours) & set('&%$#_{}^~<>|`\\"'), (character, told)


@given(st.text(st.sampled_from([*TABLE]), max_size=12))
def test_signs_stand_beside_each_other_as_they_are(text):
    typeset = latex(text)
    assert typeset.isascii()
    assert typeset.replace("{}", "") == "".join(map(latex, text)).replace("{}", "")


@pytest.mark.parametrize(("text", "told"), [("a--b", "a-{}-b"), ("–-", "--{}-"), ("''", "'{}'"), ("[ER]", "{[}ER{]}")])
def test_what_tex_would_join_stays_apart(text, told):
    assert latex(text) == told


def compiled(folder, tables):
    """The text of a PDF of some tables; fails where TeX does."""
    body = "\n".join(tables)
    packages = r"\usepackage{booktabs,longtable}\usepackage[demo]{graphicx}"  # a black box for each picture
    text = rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (folder / "all.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    faults = [line for line in done.stdout.splitlines() if line.startswith("!") or "Missing character" in line]
    assert (done.returncode, faults) == (0, []), done.stdout[-2000:]
    assert "multiply defined" not in done.stdout


@needs_tex
def test_every_character_compiles_wherever_it_stands(tmp_path):
    texts = [*ODD, *(f"{c}a{c}" for c in TABLE if c != JOIN)]
    body = pd.DataFrame({"*": texts, "[b]": texts})
    plain = Table("T < [1]", "C & β", body.head(40), body.head(40).map(lambda _: True), body, ["[note]", "* note"])
    prose = Table("T", "C", body, body.map(lambda _: False), body, prose={"*": 0.4, "[b]": 0.4})
    compiled(tmp_path, [formats.to_latex(plain, "stf-a_b"), formats.to_latex(prose, "stf-c")])


@needs_tex
def test_every_table_and_caption_of_a_build_compiles(tmp_path):
    """All beside each other, where something is built."""
    from pathlib import Path

    built = sorted((Path(__file__).parents[2] / "results").glob("*/targets/*/*.tex"))
    if not built:
        pytest.skip("nothing is built here")
    compiled(tmp_path, [file.read_text(encoding="utf-8") + r"\clearpage" for file in built])

"""Text as LaTeX (its defaults, with booktabs): every character by a table, and none that is not in it."""

import re
import unicodedata

from clpapers.provenance import ProvenanceError

JOIN = "\ue000"  # stands between characters that TeX would join to one sign
ACCENTS = dict(zip("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327", "`'^~=u.\"rHvc"))
GREEK = [  # from α on
    *("alpha", "beta", "gamma", "delta", "varepsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"),
    *("xi", "o", "pi", "rho", "varsigma", "sigma", "tau", "upsilon", "varphi", "chi", "psi", "omega"),
]
MATHS = {
    "±": "pm", "×": "times", "÷": "div", "·": "cdot", "√": "surd", "≤": "leq", "≥": "geq", "≠": "neq", "≈": "approx",
    "≡": "equiv", "∝": "propto", "∼": "sim", "→": "to", "←": "leftarrow", "↑": "uparrow", "↓": "downarrow",
    "↔": "leftrightarrow", "⇒": "Rightarrow", "⇔": "Leftrightarrow", "↦": "mapsto", "∞": "infty", "∈": "in",
    "∉": "notin", "∑": "sum", "∏": "prod", "∫": "int", "∂": "partial", "∇": "nabla", "∪": "cup", "∩": "cap",
    "∅": "emptyset", "⊂": "subset", "⊆": "subseteq", "∧": "wedge", "∨": "vee", "¬": "neg", "∀": "forall",
    "∃": "exists", "⊗": "otimes", "⊕": "oplus", "∘": "circ", "⟨": "langle", "⟩": "rangle", "⌊": "lfloor",
    "⌋": "rfloor", "⌈": "lceil", "⌉": "rceil", "‖": "Vert", "ℓ": "ell", "⊤": "top", "⊥": "bot", "′": "prime",
    "⋅": "cdot", "∗": "ast", "★": "star", "≪": "ll", "≫": "gg", "∥": "parallel", "…": "ldots", "△": "triangle",
}  # fmt: skip
TABLE = {
    **{character: character for character in map(chr, range(32, 127))},
    **{character: rf"\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "`": r"\textasciigrave{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "{''}"},
    **{"[": "{[}", "]": "{]}", "*": "{*}"},  # which begin an argument after the end of a row
    **{character: rf"$\{name}$" for character, name in MATHS.items()},
    **{chr(ord("α") + i): f"${name}$" if name == "o" else rf"$\{name}$" for i, name in enumerate(GREEK)},
    **{"ϵ": r"$\epsilon$", "ϕ": r"$\phi$", "ϑ": r"$\vartheta$", "µ": r"$\mu$", "Λ": r"$\Lambda$"},
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧ", (f"$\\mathrm{{{letter}}}$" for letter in "ABEZHIKMNOPTX"))),
    **{letter: rf"$\{unicodedata.name(letter).split()[-1].title()}$" for letter in "ΓΔΘΞΠΣΥΦΨΩ"},
    **{"−": "$-$", "†": r"$^\dagger$", "‡": r"$^\ddagger$", "§": r"\S{}", "¶": r"\P{}"},
    **{raised: f"$^{{{plain}}}$" for raised, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni")},
    **{lowered: f"$_{{{plain}}}$" for lowered, plain in zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₙₜ", "0123456789+-=()aeijknt")},
    **{"½": r"$\frac12$", "¼": r"$\frac14$", "¾": r"$\frac34$", "⅓": r"$\frac13$", "⅔": r"$\frac23$"},
    **{"–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "‐": "-", "‑": "-", "•": r"\textbullet{}"},
    **{"«": r"$\ll$", "»": r"$\gg$", "¿": "?`", "¡": "!`", "°": r"$^\circ$", "©": r"\copyright{}"},
    **{"®": r"\textregistered{}", "™": r"\texttrademark{}", "£": r"\pounds{}", "€": r"\texteuro{}"},
    **{"ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}"},
    **{"ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}", "✓": r"$\surd$", "✗": r"$\times$"},
    **{"\u00a0": "~", "\u202f": r"\,", "\u2009": r"\,", "\u200b": "", "\u00ad": r"\-", "\n": " ", "\t": " "},
    JOIN: "{}",
}  # fmt: skip


class TexError(ProvenanceError):
    """A text has a character without a form in LaTeX; one line: text, character, remedy."""


def latex(text: str) -> str:
    """A text in LaTeX, which shows it as it is. Raises `TexError` for a character that the table lacks."""
    apart = re.sub(r"(?<=[-–—‐‑])(?=[-–—‐‑])|(?<=['‘’“”])(?=['‘’“”])|(?<=[?!])(?=[‘“])", JOIN, text)
    found: list[str] = []
    for character in unicodedata.normalize("NFC", apart):
        if character not in TABLE:
            decomposed = unicodedata.normalize("NFD", character)
            letter, marks = decomposed[0], decomposed[1:]
            if letter not in TABLE or not marks or not all(mark in ACCENTS for mark in marks):
                name = unicodedata.name(character, f"U+{ord(character):04X}")
                raise TexError(f"{text[:60]!r}: {character!r} ({name}) has no form in LaTeX; write it otherwise")
            written = {"i": r"\i", "j": r"\j"}.get(letter, TABLE[letter])
            for mark in marks:
                written = rf"\{ACCENTS[mark]}{{{written}}}"
            found.append(written)
            continue
        found.append(TABLE[character])
    return "".join(found)

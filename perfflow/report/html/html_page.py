"""The whole HTML page: the frame around its sections, with styles and scripts inline.

The policy allows scripts and styles only by their hashes, so a script inside a name could never run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup

from perfflow.report.blocks import Block
from perfflow.report.html.elements import Drawn, anchor, block_html, joined
from perfflow.report.sanitize import visible

PagePart = Block | Drawn | Markup
_PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="{verdict}">
<p class="kind">{kind}</p>
<h1>{component}</h1>
<p class="run">{run}</p>
{opening}
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="content">
{content}
</main>
<footer><p>{beside}</p></footer>
{scripts}
</body>
</html>
""")


@dataclass(frozen=True)
class Head:
    """The head of a page; ``verdict`` is a class of its style."""

    kind: str
    name: str
    about: str
    verdict: str
    opening: tuple[Block | Markup, ...]
    beside: Markup
    """The footer: files in the folder of the page, or a note."""


def page_html(
    head: Head, shown: Sequence[tuple[str, tuple[PagePart, ...]]], script_names: Sequence[str] = ("page.js",)
) -> str:
    """Return a self-contained page of sections, each with a title, which may be '', and its parts."""
    style, scripts = _asset("page.css"), list(map(_asset, script_names))
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    return _PAGE.format(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src {hashes}; base-uri 'none'; "
        "form-action 'none'",
        title=visible(f"{head.kind}: {head.name}"),
        style=style,
        verdict=head.verdict,
        kind=head.kind,
        component=visible(head.name),
        run=visible(head.about),
        opening=joined([block_html(block) for block in head.opening]),
        beside=head.beside,
        links=joined([_link(title) for title, _ in shown if title]),
        content=joined([_section_html(title, parts) for title, parts in shown]),
        scripts=joined([Markup("<script>{}</script>").format(script) for script in scripts]),
    )


@cache
def _asset(name: str) -> Markup:
    """Return a file beside this module without indentation and comment lines, to be inlined into the page."""
    lines = (line.lstrip() for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines())
    return Markup("\n".join(line for line in lines if line and not line.startswith("//")))  # noqa: S704 (our own file)


@cache
def _hash(text: Markup) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _link(title: str) -> Markup:
    return Markup('<li><a href="#{}">{}</a></li>').format(anchor(title), title)


def _section_html(title: str, parts: Sequence[PagePart]) -> Markup:
    blocks = joined([block_html(part) for part in parts])
    if not title:
        return blocks
    return Markup('<section aria-labelledby="{0}"><h2 id="{0}">{1}</h2>\n{2}</section>').format(
        anchor(title), title, blocks
    )

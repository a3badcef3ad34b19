"""What tests of pages share: the page on a screen, the parsed Markdown, and what must hold for any of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from perfflow.model.result import Result
from perfflow.report import markdown, terminal
from perfflow.report.sanitize import cells

GOLDEN = Path(__file__).parent / "golden"
OWN_HTML = re.compile(r"<details><summary>[A-Z][a-z, ]+</summary>\n|</details>\n")
NEVER = {"link_open", "image", "hr", "blockquote_open", "code_block", "s_open", "em_open"}
TRICKY = "`|\\<>[]()*_~#@:/!-+=.1w \n"
"""Letters that mean something in Markdown."""


def screen(result: Result, width: int = 100, *, unicode: bool = True, **how: Any) -> str:
    place = {"where": ".perfflow/runs/x/report.md"}
    return terminal.render(result, width=width, unicode=unicode, **{"color": False, **place, **how})


def check_golden(name: str, text: str) -> None:
    """Compare with the text as it was. To accept a change: look at the .got file, then move it over the golden one."""
    golden, got = GOLDEN / name, GOLDEN / f"{name}.got"
    if golden.exists() and golden.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8")
    raise AssertionError(f"differs from {golden}: see {got}")


def check_lines(text: str, width: int) -> None:
    """Check that no line is wider, and that none has a control character."""
    for line in text.removesuffix("\n").split("\n"):
        assert cells(line) <= width
        assert line.isprintable()


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)


def every(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in (token, *every(token.children or []))]


def tables(tokens: list[Token]) -> dict[str, list[list[str]]]:
    """Return the rows of cells by the heading above, or by the summary of the fold around."""
    found: dict[str, list[list[str]]] = {}
    title = ""
    for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == "heading_open":
            title = after.content
        elif token.type == "html_block" and "<summary>" in token.content:
            title = token.content.partition("<summary>")[2].partition("<")[0]
        elif token.type == "tr_open":
            found.setdefault(title, []).append([])
        elif token.type == "inline" and token.level and found.get(title) and after.type in ("td_close", "th_close"):
            found[title][-1].append(token.content)
    return found


def rows(result: Result, title: str) -> list[list[str]]:
    """Return the cells of a table of the report, without its head."""
    return tables(parsed(markdown.render(result)))[title][1:]


def headings(result: Result) -> list[str]:
    return re.findall(r"^##+ (.*)$", markdown.render(result), re.MULTILINE)


def section(result: Result, title: str) -> str:
    return markdown.render(result).split(f"\n### {title}\n")[1].split("\n### ")[0]


def check_inert(text: str, own: re.Pattern[str] = OWN_HTML) -> list[Token]:
    """Check that nothing in a page acts or breaks its layout. ``own``: the HTML that it may have."""
    tokens = parsed(text)
    html = [token.content for token in every(tokens) if token.type in ("html_block", "html_inline")]
    for content in html:
        assert own.sub("", content).strip() == "", content
    assert "".join(html).count("<details>") == "".join(html).count("</details>")
    assert not NEVER & {token.type for token in every(tokens)}
    # GitHub extends CommonMark: text outside of code must not be a mention, a reference or a link.
    # One paragraph or cell at a time, so that text does not join with the next one.
    inline = [token.children or [] for token in every(tokens) if token.type == "inline"]
    plain = "\n".join("".join(token.content for token in parts if token.type == "text") for parts in inline)
    assert not re.search(r"@\w|#\d|\bGH-\d|://|\bwww\.", plain, re.IGNORECASE), plain
    assert all(letter.isprintable() or letter in "\n\t\u200b" for letter in text)
    _check_balanced(text, tokens)
    return tokens


def _check_balanced(text: str, tokens: list[Token]) -> None:
    """Check that each row of a table has as many bars as its head; readers silently fill or cut other rows."""
    fenced = {line for token in tokens if token.map and token.type == "fence" for line in range(*token.map)}
    block: list[int] = []
    for number, line in enumerate([*text.split("\n"), ""]):
        if line.startswith("|") and number not in fenced:
            block.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(block)) <= 1, (block, line)
            assert len(block) != 1, line
            block = []

"""MkDocs hook: the site also has the README as a page, and its pages fit narrow windows.

Links to other files outside docs/, such as examples/ and the pages for maintainers in dev/, become text with the file's
place in the repository. Raises PluginError if one does not exist, so that broken links are found.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)#\s:]+)(?P<anchor>#[\w-]+)?\)")
_OF_README = re.compile(r'(?P<before>\]\(|(?:src|srcset)=")(?![a-z]+:|#)(?:(?P<docs>docs/)|)')
_BREAKABLE = re.compile(r"(?<=\w)[/_.=:,|-](?=\w)|,(?=\S)|[a-z](?=[A-Z])|[^\W_]{24}(?=\w)")
"""After what a long word of code may continue on the next line."""
_NARROW, _PROSE, _WHOLE = 46, 16, 20
"""Letters that fit in a line of a table on a telephone, of a column that reads well, and of code that never breaks."""
_PAGE = "readme.md"
"""The README in the site; mkdocs reserves its own name for the first page of a folder."""


def on_config(config: Any) -> Any:
    """Let pages fit into narrow windows."""
    config.markdown_extensions.append(_NarrowPages())
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the README, whose links begin in the folder above."""
    text = (Path(config["docs_dir"]).parent / "README.md").read_text()
    moved = _OF_README.sub(lambda match: match["before"] + ("" if match["docs"] else "../"), text)
    files.append(File.generated(config, _PAGE, content=moved))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return the text of a page with the places of files instead of links out of the documentation."""
    root = Path(config["docs_dir"]).resolve()
    folder = (root / page.file.src_path).parent

    def in_site(match: re.Match[str]) -> str:
        target = (folder / match["target"]).resolve()
        if target.is_relative_to(root) and target.suffix in {".md", ".webp", ""}:
            return match[0]
        if target == root.parent / "README.md":
            return f"[{match['text']}]({os.path.relpath(root / _PAGE, folder)}{match['anchor'] or ''})"
        if not target.exists():
            raise PluginError(f"{page.file.src_path}: {match['target']} does not exist")
        place = str(target.relative_to(root.parent))
        return match["text"] if place in match["text"] else f"{match['text']} (`{place}` in the repository)"

    return _LINK.sub(in_site, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Return a page whose search has a name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


class _NarrowPages(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (its name there)
        # After the text of cells was parsed, whose priority is 20.
        md.treeprocessors.register(_Breaks(md), "breaks", 15)


class _Breaks(Treeprocessor):
    """Says where lines of code may break, and gives each cell of a table the heading of its column."""

    def run(self, root: Element) -> None:
        """Prepare a page; tables that a narrow window shows row by row are marked."""
        for code in root.iter("code"):
            _let_break(code)
        for table in root.iter("table"):
            rows = [list(row) for row in table.iter("tr")]
            for cell in rows[0]:
                # A heading without words is none to a screen reader.
                cell.tag = cell.tag if cell.text or len(cell) else "td"
            for column in zip(*rows, strict=True):
                for cell in column[1:]:
                    cell.set("data-head", "".join(column[0].itertext()))
            if sum(max(map(_width, column)) for column in zip(*rows, strict=True)) > _NARROW:
                table.set("data-wide", "")


def _let_break(code: Element) -> None:
    # A bar in a cell is escaped in Markdown, also within code.
    text = (code.text or "").replace("\\|", "|")
    whole = len(text) <= _WHOLE
    if whole:
        code.set("data-whole", "")
    first, *rest = [text] if whole else _BREAKABLE.sub("\\g<0>\0", text).split("\0")
    code.text = AtomicString(first)
    for part in rest:
        SubElement(code, "wbr").tail = AtomicString(part)


def _width(cell: Element) -> int:
    """Return how many letters wide a column must be for this cell, with the space beside it."""
    parts = list(cell.itertext())
    words = [*" ".join(parts).split(), *(code.text or "" for code in cell.iter("code") if "data-whole" in code.attrib)]
    return 3 + max(min(len("".join(parts)), _PROSE), *map(len, words), 0)

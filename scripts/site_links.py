"""MkDocs hook that turns links to files outside docs/ into text with the file's place in the repository.

The site does not contain these files, such as examples/ and the pages for maintainers in dev/. Raises PluginError if
one does not exist, so that broken links are found.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)#\s:]+)(?:#[\w-]+)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return the text of a page with the places of files instead of links out of the documentation."""
    root = Path(config["docs_dir"]).resolve()
    folder = (root / page.file.src_path).parent

    def without_link(match: re.Match[str]) -> str:
        target = (folder / match["target"]).resolve()
        if target.is_relative_to(root) and target.suffix in {".md", ".webp", ""}:
            return match[0]
        if not target.exists():
            raise PluginError(f"{page.file.src_path}: {match['target']} does not exist")
        place = str(target.relative_to(root.parent))
        return match["text"] if place in match["text"] else f"{match['text']} (`{place}` in the repository)"

    return _LINK.sub(without_link, markdown)

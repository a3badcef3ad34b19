"""Text to stdout whose reader may go away, as ``head`` does: that is its business and changes no exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from perfflow.cli.style import style_of
from perfflow.report.plain import ascii_text


def say(text: str, *, end: str = "\n") -> None:
    """Print to stdout; after the reader has gone, nowhere."""
    try:
        # Colour was decided before, once; click must not decide it again.
        click.echo(text + end, nl=False, color=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say_page(lines: Iterable[str]) -> None:
    """Print lines in characters that stdout understands; they fit its terminal already."""
    text = "\n".join(lines)
    say(text if style_of(sys.stdout).unicode else ascii_text(text))


def tell(text: str) -> None:
    """Write to stderr in one piece; after the reader has gone, nowhere: what is told must not stop what is measured."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())

"""The version of perfflow; packages are built with it.

Reading it from the installed metadata instead would take as long as all else that ``--version`` does.
"""

from __future__ import annotations

VERSION = "0.1.0"

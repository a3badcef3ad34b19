"""``python -m perfflow``."""

import contextlib
import os
import sys

# Python puts the current folder first: a module of the project that is looked at must not be run in place of another.
with contextlib.suppress(FileNotFoundError):  # the folder may be gone, and no module of it is found then
    if sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109 (pathlib takes longer to import than this takes)
        del sys.path[0]

from perfflow.cli.main import main

main()

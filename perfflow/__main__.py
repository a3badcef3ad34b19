"""``python -m perfflow``."""

import contextlib
import os
import sys

# Python puts the current folder first in sys.path, but modules of the measured project must not be imported.
with contextlib.suppress(FileNotFoundError):  # the current folder may have been removed
    if sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109 (importing pathlib would take longer)
        del sys.path[0]

from perfflow.cli.main import main

main()

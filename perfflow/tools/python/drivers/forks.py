"""The end of a forked child of a driver.

Imported by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any, Callable, NoReturn  # noqa: UP035


def finish(work: Callable[[], Any]) -> NoReturn:
    """Do work and end this process, with the exit status that a program with this work would have."""
    status: Any = 1
    try:
        work()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(error.code + "\n")
    except BaseException:  # noqa: BLE001 (the process ends)
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)

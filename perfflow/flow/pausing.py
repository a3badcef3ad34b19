"""^Z stops what perfflow runs together with perfflow, and ``fg`` lets both go on.

Children have sessions of their own, so the terminal's signal does not reach them by itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from perfflow.flow.workshop import Workshop


@contextmanager
def pausing(shop: Workshop) -> Iterator[None]:
    """Pause on SIGTSTP; left alone where it is ignored (nohup, no job control) and outside of the main thread."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTSTP) is not signal.SIG_DFL:
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        shop.pause()
        os.kill(os.getpid(), signal.SIGSTOP)
        shop.resume()

    signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)

"""A file that is opened again for each row, by two threads, one that has an odd name, and one that is not there."""

import contextlib
import sys
import tempfile
import threading
from pathlib import Path

count = int(sys.argv[1])


def read(path: Path) -> None:
    for _ in range(count):
        path.read_text()


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    table = Path(folder) / "table.txt"
    table.write_text("row\n")
    threads = [threading.Thread(target=read, args=(table,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (Path(folder) / 'é "q"\n.txt').write_text("")
    with contextlib.suppress(OSError):
        (Path(folder) / "missing").read_text()

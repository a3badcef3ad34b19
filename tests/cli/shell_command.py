# What a shell starts as `perfflow`: it asks the fork server for the command and ends as that does. ``shell`` copies the
# program into the folder where the server listens. The file beside it has the path of the installed perfflow, and
# the variables that an interpreter reads at start: with others, the server cannot stand in for one.
import json
import os
import signal
import socket
import sys
from pathlib import Path

folder = Path(__file__).parent
installed, names, usual = json.loads((folder / "installed.json").read_text())
environ = dict(os.environ)
if {name: value for name, value in environ.items() if name.startswith(tuple(names))} != usual:
    os.execv(installed, [installed, *sys.argv[1:]])  # noqa: S606
environ["PATH"] = ":".join(part for part in environ["PATH"].split(":") if part != str(folder))
asked = {"words": sys.argv[1:], "cwd": str(Path.cwd()), "environ": environ, "script": False}
ours, theirs = socket.socketpair()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(str(folder / "server"))
    socket.send_fds(server, [json.dumps(asked).encode()], [1, 2, theirs.fileno(), 0])
theirs.close()
answer = ours.makefile()
pid = int(answer.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _frame: os.kill(pid, number))
status = int(answer.readline())
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)

"""Prints what a program can see of how it was started."""

import json
import sys

here: int = 1
names = {
    name: str(value).split(" at 0x")[0]
    for name, value in globals().items()
    if name.startswith("__") and name != "__builtins__"
}
is_main = sys.modules["__main__"].__dict__ is globals()
driver = sorted(name for name in sys.modules if "perfflow" in name)
seen = {"names": names, "is_main": is_main, "driver": driver, "argv": sys.argv, "path": sys.path}
sys.stdout.write(json.dumps({**seen, "orig_argv": getattr(sys, "orig_argv", None)}))

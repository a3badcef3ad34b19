"""Say which PyTorch this interpreter has and on what it runs, as ``key=value``; exit 77 with a remedy without it."""

from __future__ import annotations

import sys
from typing import NoReturn


def unable(why: str) -> NoReturn:
    """Say what the machine lacks; by 77 perfflow skips the workflow."""
    sys.stderr.write(f"{why}\n")
    sys.exit(77)


def main() -> None:
    """Print version, device, and whether ranks can talk by gloo."""
    try:
        import torch
        from torch import distributed
    except ImportError as error:
        remedy = "pip install torch, or --set python=INTERPRETER of an environment that has it"
        unable(f"PyTorch cannot be imported by {sys.executable} ({error}): {remedy}")
    if "--gloo" in sys.argv and not (distributed.is_available() and distributed.is_gloo_available()):
        unable(f"PyTorch {torch.__version__} of {sys.executable} was built without gloo, by which ranks talk")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sys.stdout.write(f"version={torch.__version__}\ndevice={device}\n")


if __name__ == "__main__":
    main()

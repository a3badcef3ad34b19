"""``python -m perfflow``."""

from perfflow.cli.main import main

main()

"""``python -m graphkernel``."""

from graphkernel.cli import main

main()

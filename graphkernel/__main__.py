"""``python -m graphkernel``."""

from graphkernel.cli import main

if __name__ == "__main__":  # processes that a command starts import this file as well
    main()

"""``python -m quincunx`` and the command ``quincunx``."""

import sys

from quincunx.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())

"""``python -m latentviews``, the command line."""

import sys

from latentviews.cli import main

if __name__ == "__main__":
    sys.exit(main())

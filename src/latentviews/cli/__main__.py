"""``python -m latentviews.cli``, the command line too."""

import sys

from latentviews.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.fuzz fits`` and ``python -m tests.fuzz files``."""

import argparse
import itertools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the catalogue is

from . import damage, fits
from .driver import drive, serve

KINDS = {"fits": fits, "files": damage}
SLOW, SELDOM = ".h5ad", 50  # files that a process of their own looks at first, and rounds without them after one with
MOST_TURNS = 6  # of a family in a round: one for every line that it has in the catalogue, up to so many


def main() -> int:
    """Run cases; the exit status is one where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="cases in all, over the families in turn")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case of every family")
    parser.add_argument("--minutes", type=float, default=10.0, help="after which no further case is begun")
    parser.add_argument("--family", action="append", help="only this family; may be given again")
    parser.add_argument("--case", type=int, help="only this case, in this process")
    parser.add_argument("--log", type=Path, help="a file for one line of JSON per case")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)  # cases on standard input
    options = parser.parse_args()
    module = KINDS[options.kind]
    if options.serve:
        serve(options.kind, module.run_case, options.seed, [tuple(case) for case in json.load(sys.stdin)])
        return 0
    turns = [name for name, lines in module.families().items() for _ in range(min(max(len(lines), 1), MOST_TURNS))]
    quick = [name for name in turns if not name.endswith(SLOW)]
    turns += quick * SELDOM if len(quick) < len(turns) else []
    names = options.family or turns
    unknown = set(names) - set(module.families())
    if unknown:
        parser.error(f"no family is called {sorted(unknown)}; there are {list(module.families())}")
    if options.case is not None:
        cases = [(names[0], options.case)]
    else:
        numbers = {name: itertools.count(options.first) for name in names}
        cases = [(name, next(numbers[name])) for name in itertools.islice(itertools.cycle(names), options.count)]
    with open(options.log or "/dev/null", "a") as log:
        tally = drive(options.kind, options.seed, cases, options.minutes, log)
    print(tally.table())
    return int(bool(tally.findings))


if __name__ == "__main__":
    sys.exit(main())

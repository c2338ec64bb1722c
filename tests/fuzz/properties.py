"""What holds of any table: a valid model or answer, or a sentence; hypothesis makes the cases, and shrinks a fault.

``python -m tests.fuzz.properties NAME --count 10000`` tries one of them on so many, and prints a line of JSON.
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # where the catalogue is

from fuzz import fits
from fuzz.drawn import DrawnGenerator
from fuzz.functions import FUNCTIONS, function_case
from fuzz.measures import MEASURES
from fuzz.outputs import OUTPUTS
from fuzz.pictures import PICTURES
from fuzz.verdicts import Judge

SLOW_IS_FINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
Check = Callable[[Any], None]  # of hypothesis's data; it fails where something is at fault


def of_models(family: str, data: Any) -> None:
    """A table gives a model all of whose answers are valid, or a sentence."""
    words, judge = fits.judged_case(family, DrawnGenerator(data))

    assert not judge.faults, "\n".join([words, *map(str, judge.faults)])


def of_functions(name: str, data: Any) -> None:
    """A table gives a valid answer, or a sentence."""
    rng, judge = DrawnGenerator(data), Judge()

    words = function_case(rng, judge, wild=bool(rng.random() < 0.25), name=name)

    assert not judge.faults, "\n".join([words, *map(str, judge.faults)])


def of_outputs(name: str, data: Any) -> None:
    """A model gives a whole picture, text or file, or a sentence."""
    rng, judge = DrawnGenerator(data), Judge()

    {**PICTURES, **OUTPUTS}[name](rng, judge, bool(rng.random() < 0.25))

    assert not judge.faults, "\n".join([name, *map(str, judge.faults)])


PROPERTIES: dict[str, Check] = {
    **{family: partial(of_models, family) for family in fits.families() if family != "functions"},
    **{name: partial(of_functions, name) for name in (*FUNCTIONS, *MEASURES)},
    **{name: partial(of_outputs, name) for name in (*PICTURES, *OUTPUTS)},
}


def tried(check: Check, count: int, number: int) -> dict[str, Any]:
    """How many cases hold of so many, and the simplest that does not."""
    began, held = time.process_time(), 0

    @seed(number)
    @settings(max_examples=count, database=None, **SLOW_IS_FINE)
    @given(data=st.data())
    def one(data: Any) -> None:
        nonlocal held
        check(data)
        held += 1

    try:
        one()
        fault = None
    except Exception:  # hypothesis tells the case in notes of the error
        fault = traceback.format_exc()
    return {"cases": held, "fault": fault, "seconds": round(time.process_time() - began, 1)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.properties", description=__doc__)
    parser.add_argument("name", choices=list(PROPERTIES))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(tried(PROPERTIES[options.name], options.count, options.seed)))

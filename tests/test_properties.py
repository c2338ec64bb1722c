"""Whatever comes, a valid model or a sentence: hypothesis makes the cases of the fuzzer, and shrinks what it finds.

A few per family run with the tests; ``make properties`` runs ten thousand of each.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import fits
from fuzz.drawn import DrawnGenerator
from fuzz.functions import FUNCTIONS, function_case
from fuzz.measures import MEASURES
from fuzz.verdicts import Judge

FAMILIES = [name for name in fits.families() if name != "functions"]


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_any_table_gives_a_valid_model_or_a_sentence(family, data):
    words, judge = fits.judged_case(family, DrawnGenerator(data))

    assert list(judge.faults) == [], words


@pytest.mark.parametrize("name", [*FUNCTIONS, *MEASURES])
@given(data=st.data())
def test_any_table_gives_a_valid_answer_or_a_sentence(name, data):
    rng, judge = DrawnGenerator(data), Judge()

    words = function_case(rng, judge, wild=bool(rng.random() < 0.25), name=name)

    assert list(judge.faults) == [], words

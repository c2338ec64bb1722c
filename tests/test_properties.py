"""Whatever comes, a valid model or a sentence: hypothesis makes the cases of the fuzzer, and shrinks what it finds.

A few per property run with the tests; ``make properties`` tries ten thousand of each.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.properties import PROPERTIES, tried


@pytest.mark.parametrize("name", list(PROPERTIES))
@given(data=st.data())
def test_any_table_gives_something_valid_or_a_sentence(name, data):
    PROPERTIES[name](data)


def test_a_property_that_fails_is_told_with_its_simplest_case():
    def below_five(data):
        number = data.draw(st.integers(0, 100))
        assert number < 5, f"the number {number}"

    found = tried(below_five, 200, 0)

    assert "the number 5" in found["fault"]
    assert tried(lambda data: None, 20, 0)["fault"] is None


def test_what_holds_is_counted():
    assert tried(lambda data: data.draw(st.integers(0, 10**6)), 20, 0)["cases"] == 20

"""How long jobs are run by is said by name, checked once and shown by `help`."""

import inspect

import pytest

from quincunx import counting
from quincunx._job import JobOptions

EXACT = [
    counting.count_independent_sets,
    counting.count_matchings,
    counting.count_perfect_matchings,
    counting.count_spanning_trees,
    counting.independence_polynomial,
    counting.matching_polynomial,
    lambda graph, **options: counting.hard_core(graph, 1, **options),
]


@pytest.mark.parametrize("count", EXACT)
def test_a_name_that_is_not_taken_is_refused_as_python_does(count):
    with pytest.raises(TypeError, match=r"^[a-z_]+\(\) got an unexpected keyword argument 'thread'$") as refused:
        count((2, [(0, 1)]), thread=1)
    assert str(refused.value).startswith("hard_core" if count.__name__ == "<lambda>" else count.__name__)


@pytest.mark.parametrize("count", [*EXACT[:-1], counting.hard_core])
def test_signatures_name_every_option_with_its_type(count):
    parameters = inspect.signature(count).parameters
    shown = {name: parameters[name].annotation for name in [*parameters][-len(JobOptions.__annotations__) :]}
    assert shown == JobOptions.__annotations__
    assert all(parameters[name].default is None for name in shown)
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())

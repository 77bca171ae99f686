"""A new user's ten tasks for each audience (`tasks.md`) run as they are typed, each by itself."""

import doctest
import re
import warnings
from pathlib import Path

import pytest

from quincunx.errors import ConvergenceWarning, MisfitWarning

PAGE = Path(__file__).parent / "tasks.md"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
TASKS = dict(re.findall(r"^### (.+?)\n+```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("task", TASKS)
def test_a_task_goes_as_it_is_typed(task):
    pytest.importorskip("matplotlib").use("agg")
    test = doctest.DocTestParser().get_doctest(TASKS[task], {}, task, str(PAGE), 0)
    runner, said = doctest.DocTestRunner(optionflags=FLAGS, verbose=False), []
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, MisfitWarning):  # of fits that are short here
            warnings.simplefilter("ignore", kind)
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def test_there_are_ten_tasks_for_each_audience():
    *audiences, stumbles = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert [len(re.findall(r"^### ", part, flags=re.MULTILINE)) for part in audiences] == [10, 10, 10]
    assert stumbles.startswith("Where they stumbled")
    assert len(TASKS) == 30

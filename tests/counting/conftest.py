"""What files of this room share."""

import pytest

from quincunx import lattices
from quincunx.counting import count_independent_sets


@pytest.fixture(scope="session")
def long_count():
    """The count of a job of a second, `LONG` in several files, made without a stop."""
    return count_independent_sets(lattices.square(22, 400))

"""Types of the compiled module. The documentation is in the Python functions that call it."""

from typing import Final

__version__: Final[str]
__build_profile__: Final[str]

def available_threads() -> int: ...
def forget_pools() -> None: ...
def to_decimal(value: int) -> str: ...

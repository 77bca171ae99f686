"""Parameters of estimators: the annotated fields of a class, from which its constructor is made."""

import inspect
from dataclasses import dataclass, field
from typing import Self, TypeVar, dataclass_transform

from quincunx import _check
from quincunx._types import Facts

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters(cls: type[T]) -> type[T]:
    """Make the fields of a class, after those of its bases, parameters of its constructor, which stores them.

    They go by keyword, but for each ``field(default=..., kw_only=False)``. Type checkers, `inspect.signature`,
    scikit-learn and Sphinx read them as those of any constructor.
    """
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


class Parametrized:
    """Is the base of what has parameters that can be read and set by name, as scikit-learn's estimators do."""

    def get_params(self, deep: bool = True) -> Facts:
        """Return the parameters of the constructor by name.

        Parameters
        ----------
        deep : bool
            Without effect: no parameter is an estimator.

        Returns
        -------
        dict
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **parameters: object) -> Self:
        """Set parameters of the constructor by name.

        Parameters
        ----------
        **parameters
            The new values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no parameter of a name.
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"`{name}` must be one of {list(known)}{_check.meant(name, known)}")
            setattr(self, name, value)
        return self

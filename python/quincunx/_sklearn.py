"""Estimators that become scikit-learn's when the first one is made.

To import scikit-learn takes several times as long as NumPy and this package together. So a class names its bases there,
``class Model(Deferred, sklearn=("RegressorMixin", "BaseEstimator"))``, and gets them, before its own ones, when an
instance is made, or at once where scikit-learn is loaded already.
"""

import functools
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, Self, TypeVar

from quincunx._docs import assembled
from quincunx._optional import require
from quincunx._types import Tags

F = TypeVar("F", bound=Callable[..., object])

NAMES = ("n_features_in_", "feature_names_in_")


def keeps_names(fit: F) -> F:
    """Have a `fit` that is refused leave what was known of the features, which scikit-learn's checks set at once."""

    @functools.wraps(fit)
    def kept(self: object, *given: Any, **named: Any) -> object:
        before = {name: vars(self)[name] for name in NAMES if name in vars(self)}
        try:
            return fit(self, *given, **named)
        except BaseException:
            for name in NAMES:
                vars(self).pop(name, None)
            vars(self).update(before)
            raise

    return kept  # type: ignore[return-value]


#: What methods of estimators have in common.
estimator_doc = assembled(
    records="""
    Parameters
    ----------
    X : array_like, shape (n_samples, n_features)
        Records.
    """,
    predicted="""
    Parameters
    ----------
    X : array_like, shape (n_samples, n_features)
        Records.

    Returns
    -------
    ndarray, shape (n_samples,)
    """,
    private="""
    Parameters
    ----------
    X : array_like, shape (n_samples, n_features)
        Private records.
    y : array_like, shape (n_samples,)
        Private answers.
    """,
    fitted="""
    Returns
    -------
    self

    Raises
    ------
    ValueError, TypeError
        If an argument or a parameter is not what it should be.
    """,
    scored="""
    Parameters
    ----------
    X : array_like, shape (n_samples, n_features)
        Records without noise.
    y : array_like, shape (n_samples,)
        Their answers, or labels, without noise.
    sample_weight : array_like, shape (n_samples,), optional
        Weights of the records.

    Returns
    -------
    float
    """,
)
_waiting: list[tuple[type, tuple[str, ...]]] = []
_lock = threading.RLock()


class _Signature:
    """What `inspect` is to read of a class: its constructor, and not `__new__`."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        _, *parameters = inspect.signature(owner.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature(parameters)


class Deferred:
    """Is the base of a class that scikit-learn's bases are put before."""

    __signature__ = _Signature()

    #: The arguments of methods that scikit-learn is not to route as metadata: the data.
    _data_arguments: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, sklearn: tuple[str, ...] = (), **options: object) -> None:
        super().__init_subclass__(**options)
        if sklearn:
            _waiting.append((cls, sklearn))

    def __new__(cls, *_arguments: object, **_options: object) -> Self:
        complete()
        return object.__new__(cls)

    def __sklearn_tags__(self) -> Tags:
        """Return what scikit-learn's base says; that is found first once an instance exists."""
        raise NotImplementedError


def complete() -> None:
    """Give every class that waits for them its bases."""
    with _lock:
        if not _waiting:
            return
        base = require("sklearn.base", "sklearn")
        unused = require("sklearn.utils.metadata_routing", "sklearn").UNUSED
        classes = [cls for cls, _ in _waiting]
        for cls, names in _waiting:
            for method, argument in cls.__dict__.get("_data_arguments", {}).items():
                setattr(cls, f"__metadata_request__{method}", {argument: unused})
            cls.__bases__ = (*(getattr(base, name) for name in names), *cls.__bases__)
        _waiting.clear()
        # What the bases do when a class is defined: in the order in which these were, parents first.
        for cls in classes:
            children: list[type] = cls.__subclasses__()
            classes.extend(child for child in children if child not in classes)
        for cls in sorted(classes, key=lambda cls: len(cls.__mro__)):
            super(cls, cls).__init_subclass__()  # type: ignore[arg-type]


def admit(module: str, name: str) -> type:
    """Return an estimator of a module, or say how to install scikit-learn."""
    if importlib.util.find_spec("sklearn") is None:
        require("sklearn", "sklearn")
    found: type = getattr(importlib.import_module(module), name)
    if "sklearn.base" in sys.modules:
        complete()
    return found


def validation() -> ModuleType:
    """Return scikit-learn's checks of input."""
    return require("sklearn.utils.validation", "sklearn")


class available_if:
    """Makes a method that is there only where a parameter has a value, as scikit-learn's decorator of this name."""

    def __init__(self, name: str, value: object) -> None:
        self._name, self._value = name, value

    def __call__(self, method: F) -> F:
        self._method = method
        functools.update_wrapper(self, method)
        return self  # type: ignore[return-value]

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is not None and getattr(instance, self._name) != self._value:
            method = self._method.__name__
            raise AttributeError(f"{owner.__name__} has `{method}` only with {self._name}={self._value!r}")
        return self._method.__get__(instance, owner)

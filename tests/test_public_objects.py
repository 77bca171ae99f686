"""What holds for everything public, found by introspection: its objects are pickled whole, arrays of any layout do."""

import copy
import functools
import inspect
import pickle
import time
import types
import warnings

import numpy as np
import pytest
import scipy.sparse
from tests import hostile

from quincunx import datasets, entropy, factorization, ldp, leakage, privacy


@functools.cache
def examples():
    """The calls of all docstrings, and an object of each public class that they make."""
    pytest.importorskip("matplotlib").use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, instances = hostile.examples(5.0)
    classes = {thing: name for name, thing in hostile.public_names() if inspect.isclass(thing)}
    return found, {classes[kind]: instance for kind, instance in instances.items()}


def same(one, other):
    """Say whether two values are the same down to their parts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return one.shape == other.shape and same(one.tolist(), other.tolist())
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if type(one).__name__ == "DataFrame":
        return one.equals(other)
    if scipy.sparse.issparse(one):
        return (one != other).nnz == 0
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(part, other[key]) for key, part in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (str, bytes, int, type(None), type, types.FunctionType, types.BuiltinFunctionType)):
        return one == other
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    if isinstance(one, (np.random.Generator, np.random.BitGenerator)):
        return repr(getattr(one, "bit_generator", one).state) == repr(getattr(other, "bit_generator", other).state)
    if isinstance(one, functools.partial):
        return same(one.__reduce__()[2], other.__reduce__()[2])
    if (state := state_of(one)) is not None:
        return same(state, state_of(other))
    return bool(one == other)


def state_of(thing):
    """What an object is made of again."""
    if not type(thing).__module__.startswith("quincunx"):
        return None
    try:
        return thing.__reduce_ex__(4)[1:3]
    except TypeError:  # of the core, made again by what has it
        return ()


#: Objects of the classes that no example shows; None where a class is abstract.
SHOWN_HERE = {
    "datasets.Enron": lambda: datasets.Enron(np.ones((1, 3)), np.ones(2)),
    "entropy.Enclosure": lambda: entropy.entropy_bounds("square", digits=3).growth_constant,
    "factorization.MPIShards": None,  # a context of the program, shown by tests of several ranks
    "factorization.Misfit": lambda: factorization.Misfit(90.0, 80.0, 1.5, 0.4, (), (0.0, 0.1), 1.0, 0.2, None),
    "ldp.priors.LKJ": ldp.priors.LKJ,
    "ldp.priors.Beta": ldp.priors.Beta,
    "ldp.priors.Dirichlet": ldp.priors.Dirichlet,
    "ldp.priors.Gamma": ldp.priors.Gamma,
    "ldp.priors.HalfNormal": ldp.priors.HalfNormal,
    "ldp.priors.LogNormal": ldp.priors.LogNormal,
    "ldp.Summary": lambda: ldp.PoissonModel(privacy.GeometricMechanism(1.0, lower=0, upper=9)).summarize([3, -4, 12]),
    "leakage.CapacityResult": lambda: leakage.Channel([[0.75, 0.25], [0.25, 0.75]]).shannon_capacity(),
    "privacy.BudgetExceeded": lambda: privacy.BudgetExceeded("too much"),
    "privacy.NoGuarantee": lambda: privacy.NoGuarantee("none"),
    "privacy.Share": lambda: privacy.Budget(1.0).split([1, 2])[0],
    "privacy.noise.Noise": None,
}
#: What must not be there twice, or cannot be taken apart: refused in words.
REFUSED = ["posterior.PackedRecords", "privacy.Budget", "privacy.Partition", "privacy.Plan"]


def objects():
    made = {name: make() for name, make in SHOWN_HERE.items() if make is not None}
    return {**made, **examples()[1]}


def test_the_table_has_every_public_class():
    public = {name for name, thing in hostile.public_names() if inspect.isclass(thing)}
    assert public == set(objects()) | {name for name, make in SHOWN_HERE.items() if make is None}


def test_every_public_object_is_pickled_and_copied_whole_or_refused_in_words():
    wrong = {}
    for name, thing in objects().items():
        ways = [lambda thing, p=p: pickle.loads(pickle.dumps(thing, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)]
        for way in (*ways, copy.copy, copy.deepcopy):
            if name in REFUSED:
                with pytest.raises(TypeError, match="cannot be pickled or copied: "):
                    way(thing)
                continue
            try:
                if not same(thing, way(thing)):
                    wrong[name] = "is another"
            except Exception as error:
                wrong[name] = repr(error)[:200]
    assert wrong == {}


def misaligned(array):
    """Return an array whose numbers begin one byte late."""
    late = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)
    late[...] = array
    assert not late.size or not late.flags.aligned or late.itemsize == 1
    return late


LAYOUTS = {
    "misaligned": misaligned,
    "of the other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "with gaps": lambda array: np.repeat(array[..., None], 2, axis=-1)[..., 0],
    "read only": lambda array: (array.setflags(write=False), array)[1],
}


def as_numbers(value):
    """Return the array of numbers that an argument stands for, or None."""
    if not isinstance(value, (list, tuple, np.ndarray)) or not len(value):
        return None
    try:
        array = np.array(value)
    except ValueError:
        return None
    return array if array.dtype in (np.int64, np.float64) and array.ndim else None


def outcome(target, arguments):
    """What a call with fixed randomness returns, or says."""
    seeds = {p.name: 1 for p in target.parameters if p.name in ("rng", "random_state", "insecure_seed")}
    try:
        function = copy.deepcopy(target.function)
        owner = getattr(function, "__self__", None)
        for seed in ("random_state", "insecure_seed"):
            if hasattr(owner, seed):
                setattr(owner, seed, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(**{**seeds, **arguments})
    except Exception as error:
        return type(error), str(error).partition("got")[0]
    if "matplotlib" in type(result).__module__ or (inspect.isclass(function) and hasattr(function, "get_params")):
        return None  # pictures, and estimators, which keep what they are given
    return list(result) if isinstance(result, types.GeneratorType) else result


def test_arrays_of_any_layout_mean_the_same():
    wrong, seen = {}, set()
    for target in (target for targets in examples()[0].values() for target in targets):
        for place, value in target.arguments.items():
            array = as_numbers(value)
            if array is None or (target.name, place) in seen:
                continue
            seen.add((target.name, place))
            start = time.process_time()
            plain = outcome(target, {**target.arguments, place: array.copy()})
            if time.process_time() - start > 0.3:
                continue  # long fits take arrays by the same ways as short ones
            for layout, laid in LAYOUTS.items():
                other = outcome(target, {**target.arguments, place: laid(array.copy())})
                if not same(plain, other):
                    wrong[f"{target.name}({place} {layout})"] = f"{plain!r:.100} | {other!r:.100}"
    assert wrong == {}
    assert len(seen) >= 80


def with_a_word(target):
    """Yield each switch of a call, and the call with a word for it; those of an estimator are looked at by its fit."""
    owner, arguments = getattr(target.function, "__self__", None), dict(target.arguments)
    if "parameters" not in {place.name for place in target.parameters}:
        arguments |= arguments.pop("parameters", {})  # of `log_likelihood(released, **parameters)`
    if hasattr(owner, "get_params") and target.function.__name__ == "fit":
        for place in inspect.signature(type(owner)).parameters.values():
            own = copy.deepcopy(owner).set_params(**{place.name: "no"}) if is_switch(place) else None
            yield place, lambda own=own: own.fit(**arguments)
    elif not hasattr(target.function, "get_params"):
        for place in target.parameters:
            yield place, lambda name=place.name: target.function(**{**arguments, name: "no"})


def is_switch(place):
    """Say whether a parameter is True or False."""
    return str(place.annotation) in ("bool", "bool | None") and not place.name.startswith("_")


def test_no_switch_takes_a_word_for_true():
    wrong, seen = {}, set()
    for target in (target for targets in examples()[0].values() for target in targets):
        for place, call in with_a_word(target):
            if not is_switch(place) or (target.name, place.name) in seen:
                continue
            try:
                found = repr(call())
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if "missing" in found and not target.arguments:
                continue  # there is no example of it
            seen.add((target.name, place.name))
            if not found.startswith(f"TypeError: `{place.name}` must be True or False, got 'no'"):
                wrong[f"{target.name}({place.name})"] = found[:100]
    assert wrong == {}
    assert len(seen) >= 35

"""Random sources: what may be given as `rng`, and what becomes of it."""

import numpy as np
import pytest

from quincunx._rng import generator, key


def test_an_int_gives_the_same_key_every_time():
    assert key(7) == key(7) == key(np.int64(7)) != key(8)
    assert key(0) == key(0)
    assert key(2**200) == key(2**200)


def test_none_gives_another_key_every_time():
    assert key(None) != key(None)


def test_a_key_is_two_words():
    for word in key(11):
        assert type(word) is int
        assert 0 <= word < 2**64


def test_the_key_is_the_first_two_words_of_numpys_generator():
    assert key(7) == tuple(np.random.default_rng(7).integers(0, 2**64, size=2, dtype=np.uint64).tolist())
    assert key(np.random.SeedSequence(7)) == key(7)


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_keys_are_words_of_integers_whatever_the_generator(kind):
    first, second = (np.random.Generator(getattr(np.random, kind)(5)) for _ in range(2))
    first.integers(0, 2**32, dtype=np.uint32)  # half a word that is kept for the next of its kind
    second.integers(0, 2**32, dtype=np.uint32)
    assert key(first) == tuple(second.integers(0, 2**64, size=2, dtype=np.uint64).tolist())
    assert first.random() == second.random()
    assert first.integers(0, 2**32, dtype=np.uint32) == second.integers(0, 2**32, dtype=np.uint32)


def test_a_generator_advances_exactly_once_per_call():
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    keys = [key(first), key(first)]
    assert keys[0] != keys[1]
    for found in keys:
        assert found == tuple(second.integers(0, 2**64, size=2, dtype=np.uint64).tolist())
    assert first.bit_generator.state == second.bit_generator.state


def test_a_generator_comes_back_itself_and_a_bit_generator_inside_one():
    source = np.random.default_rng(3)
    assert generator(source) is source
    for kind in (np.random.Philox, np.random.PCG64, np.random.MT19937):
        bits = kind(5)
        assert generator(bits).bit_generator is bits
        assert key(bits) != key(bits), "a bit generator advances, too"
    assert key(np.random.Philox(5)) == key(np.random.Philox(5))


def test_a_seed_sequence_is_not_used_up_and_its_children_differ():
    sequence = np.random.SeedSequence(5)
    assert key(sequence) == key(sequence)
    first, second = sequence.spawn(2)
    assert key(first) != key(second)


def test_there_is_no_global_state():
    before = legacy_state()
    key(None)
    key(3)
    assert legacy_state() == before


def legacy_state():
    return np.random.get_state(legacy=False)["state"]["key"].tolist()  # noqa: NPY002


@pytest.mark.parametrize(
    ("rng", "error"),
    [
        (-1, ValueError),
        (-(2**70), ValueError),
        (np.int64(-1), ValueError),
        (True, TypeError),
        (np.True_, TypeError),
        (1.0, TypeError),
        (np.float64(1.0), TypeError),
        (float("nan"), TypeError),
        ("seed", TypeError),
        (b"seed", TypeError),
        (np.random, TypeError),
        (np.random.RandomState(3), TypeError),
        (object(), TypeError),
        ([1.5], TypeError),
    ],
)
def test_what_is_no_source_is_refused_by_name(rng, error):
    for function in (generator, key):
        with pytest.raises(error, match="`seed` must be"):
            function(rng, "seed")

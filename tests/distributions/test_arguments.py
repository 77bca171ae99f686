"""Arguments: broadcasting, bad input named with its index, and the behavior of the values themselves."""

import copy
import math
import pickle
import sys

import mpmath
import numpy as np
import pytest

from quincunx.distributions import Bessel, Skellam, TwoPiecePoisson, TwoSidedGeometric

LAWS = [
    Bessel(3, 2.0),
    Bessel([0, 1, 2], 3.5),
    Skellam(1.0, [2.0, 0.0]),
    TwoSidedGeometric(alpha=0.5),
    TwoSidedGeometric(scale=[1.0, 2.0]),
    TwoPiecePoisson([[3], [-1]], [0.5, 2.0], 0.4),
]
NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *[
            (lambda x=x: Bessel(x, 1.0), "`order` must hold whole numbers of at least 0, got")
            for x in [*NOT_FINITE, -1, 2.5]
        ],
        (
            lambda: Bessel(2.0**60, 1.0),
            r"`order` must hold whole numbers of at most 2\*\*53 in size, got 1152921504606846976",
        ),
        *[(lambda x=x: Bessel(1, x), r"`argument` must be in \[0, 2\*\*53\], got") for x in [*NOT_FINITE, -1e-9, 1e17]],
        *[
            (lambda x=x: Skellam(x, 1.0), r"`rate_plus` must be in \[0, 2\*\*53\], got")
            for x in [*NOT_FINITE, -0.1, 1e17]
        ],
        *[(lambda x=x: Skellam(1.0, x), r"`rate_minus` must be in \[0, 2\*\*53\], got") for x in [*NOT_FINITE, -0.1]],
        *[
            (lambda x=x: TwoSidedGeometric(x), r"`alpha` must be in \[0, 1\), got")
            for x in [*NOT_FINITE, -0.1, 1.0, 1.5]
        ],
        *[
            (lambda x=x: TwoSidedGeometric(epsilon_per_unit=x), "`epsilon_per_unit` must be")
            for x in [*NOT_FINITE, 0.0, -1.0]
        ],
        *[
            (lambda x=x: TwoSidedGeometric(scale=x), r"`scale` must be in \(0, 1e16\], got")
            for x in [*NOT_FINITE, 0.0, -1.0]
        ],
        *[
            (lambda x=x: TwoPiecePoisson(x, 1.0, 0.5), "`released` must hold whole numbers, got")
            for x in [*NOT_FINITE, 0.5]
        ],
        *[
            (lambda x=x: TwoPiecePoisson(1, x, 0.5), r"`rate` must be in \[0, 2\*\*53\], got")
            for x in [*NOT_FINITE, -1.0]
        ],
        *[
            (lambda x=x: TwoPiecePoisson(1, 1.0, x), r"`alpha` must be in \[0, 1\), got")
            for x in [*NOT_FINITE, 1.0, -0.5]
        ],
        (lambda: TwoPiecePoisson(-1, 1.0, 0.0), "`released` must be a possible count where `alpha` is 0, got -1.0"),
        (lambda: TwoPiecePoisson(2, 0.0, 0.0), "`released` must be a possible count where `alpha` is 0, got 2.0"),
        (lambda: Bessel([[0, 1], [2, -3]], 1.0), r"got -3 at index \(1, 1\)"),
        (lambda: Skellam([1.0, 2.0, -1.0, -5.0], 1.0), r"got -1.0 at index \(2,\)"),
        (lambda: TwoPiecePoisson([1, -7], 1.0, [[0.5], [0.0]]), r"got -7.0 at index \(1, 1\)"),
    ],
)
def test_a_bad_parameter_is_named_with_rule_value_and_place(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("bad", ["3", None, True, [True, False], 1j, object(), ["a"]])
def test_what_is_not_a_number_is_a_type_error(bad):
    for make in (lambda: Bessel(bad, 1.0), lambda: Skellam(bad, 1.0), lambda: TwoPiecePoisson(1, 1.0, bad)):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError):
        Bessel(0, 1.0).pmf(bad)


def test_points_must_be_whole_and_probabilities_in_the_unit_interval():
    law = Skellam(1.0, 2.0)
    for bad in (*NOT_FINITE, 2.0**54):
        for method in (law.pmf, law.logpmf, law.cdf, law.logcdf, law.ccdf, law.logccdf):
            with pytest.raises(ValueError, match="`k` must"):
                method(bad)
    for bad in (0.5, [0, 1, 2.5]):
        for method in (law.pmf, law.logpmf):
            with pytest.raises(ValueError, match="`k` must"):
                method(bad)
    for tail in (law.cdf, law.logcdf, law.ccdf, law.logccdf):
        assert tail([-1.5, 0.4, 2.0]).tolist() == tail([-2, 0, 2]).tolist()
    for bad in (*NOT_FINITE, -1e-9, 1.0 + 1e-9):
        for method in (law.icdf, law.iccdf):
            with pytest.raises(ValueError, match=r"`p` must be in \[0, 1\]"):
                method(bad)
    with pytest.raises(ValueError, match=r"got 2.5 at index \(2,\)"):
        law.pmf([0, 1, 2.5])


def test_exactly_one_parameter_makes_a_two_sided_geometric_law():
    for arguments in ({}, {"alpha": 0.5, "scale": 1.0}, {"epsilon_per_unit": 1.0, "scale": 1.0}):
        with pytest.raises(TypeError, match="exactly one of `alpha`, `epsilon_per_unit` and `scale`"):
            TwoSidedGeometric(**arguments)
    same = [
        TwoSidedGeometric(alpha=math.exp(-2)),
        TwoSidedGeometric(epsilon_per_unit=2.0),
        TwoSidedGeometric(scale=0.5),
    ]
    for law in same:
        assert law.pmf(3) == pytest.approx(same[0].pmf(3), rel=1e-14)
        assert (law.alpha, law.epsilon_per_unit, law.scale) == pytest.approx((math.exp(-2), 2.0, 0.5), rel=1e-15)


def test_parameters_that_do_not_broadcast_are_refused():
    with pytest.raises(ValueError, match="shape mismatch"):
        Bessel([0, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="shape mismatch"):
        Bessel([0, 1], 1.0).pmf([0, 1, 2])


def test_points_broadcast_against_parameters():
    law = Skellam([[1.0], [5.0]], [2.0, 0.5, 9.0])
    assert law.shape == (2, 3)
    table = law.logpmf(np.arange(-3, 4).reshape(-1, 1, 1))
    assert table.shape == (7, 2, 3)
    assert table[2, 1, 0] == Skellam(5.0, 2.0).logpmf(-1)
    assert law.icdf(0.5).shape == law.mean().shape == law.mode().shape == (2, 3)
    assert Skellam(1.0, 2.0).pmf(np.zeros((4, 0), dtype=int)).shape == (4, 0)
    assert law.mode().dtype == np.int64


def test_a_scalar_gives_a_float():
    law = TwoPiecePoisson(np.int32(3), np.float32(0.5), 0.4)
    assert all(type(x) is float for x in (law.pmf(2), law.cdf(np.int64(1)), law.mean(), law.entropy(), law.icdf(0.2)))
    assert type(law.mode()) is int
    assert type(law.log_marginal()) is float


def test_any_layout_of_an_array_is_read_and_none_is_changed():
    backwards = np.arange(20.0)[::-2]
    backwards.flags.writeable = False
    before = backwards.copy()
    assert np.array_equal(Skellam(backwards, 1.0).mean(), before - 1.0)
    assert np.array_equal(backwards, before)
    k = np.asfortranarray(np.arange(12).reshape(3, 4))
    assert np.array_equal(Bessel(0, 4.0).pmf(k), Bessel(0, 4.0).pmf(np.ascontiguousarray(k)))
    for dtype in (np.int8, np.uint16, np.float32, np.uint64):
        assert Bessel(np.array([3], dtype=dtype), 1.0) == Bessel([3], 1.0)


def test_a_law_keeps_its_own_parameters():
    rates = np.array([1.0, 2.0])
    law = Skellam(rates, 0.5)
    rates[0] = 77.0
    assert law.rate_plus.tolist() == [1.0, 2.0]
    assert law.mean().tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match="read-only"):
        law.rate_plus[0] = 3.0


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_law_is_a_value(law):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(law, protocol))
        assert other == law
        assert hash(other) == hash(law)
        assert np.array_equal(other.mean(), law.mean())
    assert copy.copy(law) == copy.deepcopy(law) == law
    assert law != Bessel(77, 1.0)
    assert law != "a law"
    assert eval(repr(law), {**globals(), "array": np.array}) == law
    zeros = [Skellam(zero, 1.0) for zero in (0.0, -0.0)] + [Skellam([zero], 1.0) for zero in (0.0, -0.0)]
    assert zeros[0] == zeros[1]
    assert zeros[2] == zeros[3]
    assert len(set(zeros)) == 2
    with pytest.raises(AttributeError, match="does not change"):
        law.order = 3
    with pytest.raises(AttributeError, match="does not change"):
        del law._shape


def test_kurtosis_follows_the_convention_asked_for():
    law = Skellam(3.0, 1.0)
    assert law.kurtosis() == 3.25
    assert law.kurtosis(convention="excess") == 0.25
    with pytest.raises(ValueError, match="`convention` must be one of"):
        law.kurtosis(convention="pearson")


def test_a_point_mass_has_no_shape():
    for law in (Bessel(4, 0.0), Skellam(0.0, 0.0), TwoPiecePoisson(3, 1.0, 0.0), TwoPiecePoisson(3, 0.0, 0.5)):
        assert law.variance() == law.entropy() == 0.0
        assert math.isnan(law.skewness())
        assert math.isnan(law.kurtosis())
        assert law.pmf(law.mode()) == 1.0
        assert law.sample(rng=1) == law.mode() == law.icdf(0.3)


def test_plots_are_stems_on_the_given_axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert Skellam([3.0, 1.0], [1.0, 4.0]).plot_pmf(ax=ax) is ax
    assert len(ax.lines) == 2
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(y, Skellam(3.0, 1.0).pmf(np.asarray(x).astype(int)))
    with pytest.raises(ValueError, match="too wide"):
        TwoSidedGeometric(scale=1e6).plot_pmf(ax=ax)
    with pytest.raises(ValueError, match="`tail` must be in"):
        Skellam(1.0, 1.0).plot_pmf(ax=ax, tail=0.7)


def test_importing_the_room_does_not_load_matplotlib_or_scipy():
    import subprocess

    code = (
        "import sys, quincunx.distributions; print([m for m in ('matplotlib', 'scipy', 'mpmath') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


LAWS = [Skellam(3.0, 7.5), Bessel(4, 20.0), TwoSidedGeometric(alpha=0.8), TwoPiecePoisson(5, 3.0, 0.6)]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_moments_are_sums_over_the_masses(law):
    k = np.arange(-400.0, 400.0)
    masses = law.pmf(k)
    mean = float(masses @ k)
    for order in range(5):
        assert law.moment(order) == pytest.approx(float(masses @ k**order), rel=1e-9, abs=1e-9)
        central = float(masses @ (k - mean) ** order)
        assert law.moment(order, "central") == pytest.approx(central, rel=1e-9, abs=1e-9)
        scaled = central / law.standard_deviation() ** order
        assert law.moment(order, "standardized") == pytest.approx(scaled, rel=1e-9, abs=1e-9)
    assert law.median() == law.icdf(0.5)
    assert law.support() == (law.icdf(0), law.icdf(1))
    assert law.logentropy() == pytest.approx(math.log(law.entropy()))
    with pytest.raises(ValueError, match="`order` must be"):
        law.moment(5)
    with pytest.raises(ValueError, match="`kind` must be"):
        law.moment(1, "raw-ish")


NEAR_A_POINT = [
    *(TwoSidedGeometric(epsilon_per_unit=decay) for decay in (30.0, 380.0, 680.0, 700.0, 705.0)),
    *(Skellam(1e-170, small) for small in (0.0, 1e-180, 1e-170)),
    *(Skellam(0.0, rate) for rate in (1e-9, 1e-103, 1e-305)),
    *(Bessel(order, argument) for order, argument in ((0, 1e-90), (3, 1e-120), (0, 1e-151), (2, 1e-5))),
    *(TwoPiecePoisson(released, 0.5, alpha) for released in (1, 4) for alpha in (1e-20, 1e-250)),
]


@pytest.mark.parametrize("law", NEAR_A_POINT, ids=repr)
def test_moments_and_entropies_near_a_point_mass_keep_their_digits(law):
    with mpmath.workdps(700):
        masses = {k: mpmath.exp(float(law.logpmf(k))) for k in range(int(law.mode()) - 3, int(law.mode()) + 4)}
        masses[law.mode()] = 1 - sum(mass for k, mass in masses.items() if k != law.mode())
        mean = sum(k * mass for k, mass in masses.items())
        for order in (2, 3, 4):
            central = float(sum((k - mean) ** order * mass for k, mass in masses.items()))
            assert law.moment(order, "central") == pytest.approx(central, rel=1e-7, abs=1e-323)
        surprise = -sum(mass * mpmath.log(mass) for mass in masses.values() if mass)
        assert law.logentropy() == pytest.approx(float(mpmath.log(surprise)), rel=1e-9)


def test_the_entropy_of_a_law_whose_masses_underflow_has_its_logarithm():
    for decay in (709.0, 715.0, 800.0, 1e4):
        leading = math.log(2 * (1 + decay)) - decay
        assert TwoSidedGeometric(epsilon_per_unit=decay).logentropy() == pytest.approx(leading, rel=1e-14)
        found = TwoSidedGeometric(epsilon_per_unit=decay).entropy()
        assert found == pytest.approx(float(mpmath.exp(leading)), rel=1e-12)
    leading = 2 * math.log(0.5e-170)
    found = Bessel(0, [1e-170, 0.0]).logentropy()
    assert found[0] == pytest.approx(leading + math.log1p(-leading), rel=1e-14)
    assert found[1] == TwoSidedGeometric(alpha=0.0).logentropy() == -math.inf
    assert TwoPiecePoisson([2**53, 3], 1.0, 0.0).logentropy().tolist() == [-math.inf] * 2


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_logarithmic_quantiles_invert_the_logarithmic_tails_far_beyond_underflow(law):
    low, high = law.support()
    points = np.clip(np.array([-3000.0, -40.0, -3.0, 0.0, 2.0, 60.0, 4000.0]), max(low, -1e9), min(high, 1e9))
    for tail, inverse in ((law.logcdf, law.ilogcdf), (law.logccdf, law.ilogccdf)):
        for k in np.unique(points):
            reached = float(tail(k))
            if reached == 0:  # the whole law in double precision: the end of the support
                continue
            first = inverse(reached)
            assert first <= k
            assert tail(first) == reached
            if first > low:
                assert (tail(first - 1) < reached) if tail == law.logcdf else (tail(first - 1) > reached)
    assert (law.ilogcdf(-np.inf), law.ilogcdf(0.0)) == (low, high)
    assert (law.ilogccdf(0.0), law.ilogccdf(-np.inf)) == (low, high)
    for bad in (0.1, np.nan, [-1.0, 2.0]):
        with pytest.raises(ValueError, match="`logp` must be at most 0"):
            law.ilogcdf(bad)


def test_quantiles_of_a_family_broadcast():
    law = Skellam([1.0, 30.0], 2.0)
    assert law.ilogcdf([[-1.0], [-5.0], [-900.0]]).shape == (3, 2)
    assert law.moment(3).shape == law.median().shape == law.logentropy().shape == (2,)
    assert Skellam(0.0, 0.0).moment(3, "central") == 0.0


def test_laws_far_apart_are_drawn_each_on_its_own_grid():
    plt = pytest.importorskip("matplotlib.pyplot")
    axes = plt.subplots()[1]
    assert Skellam([1.0, 1e6], [1e6, 1.0]).plot(ax=axes, tail=0.2, kind="cdf") is axes
    with pytest.raises(TypeError, match="`ax` must be a matplotlib axes, got int"):
        Skellam(1.0, 1.0).plot(ax=3)


def test_masked_logarithms_are_refused():
    masked = np.ma.masked_array([-1.0, -2.0], [0, 1])
    for invert in (TwoSidedGeometric(0.5).ilogcdf, TwoSidedGeometric(0.5).ilogccdf):
        with pytest.raises(ValueError, match="`logp` must have no masked cells, got 1 of them"):
            invert(masked)


def test_an_array_to_write_to_that_is_not_aligned():
    out = np.ndarray((2,), dtype=np.int64, buffer=bytearray(17), offset=1)
    with pytest.raises(ValueError, match="`out` must be a writable C-contiguous int64 array"):
        Skellam(1.0, 1.0).sample(2, out=out)

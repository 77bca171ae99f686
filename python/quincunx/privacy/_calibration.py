"""The Gaussian mechanism's three figures, each from the other two."""

from quincunx import _check, _core
from quincunx._docs import sections

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_sigma"]


@sections
def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0, *, alongside: float = 0.0) -> float:
    r"""Least standard deviation for which Gaussian noise is (epsilon, delta)-private.

    The exact profile, with u = sensitivity / sigma, is
    ``delta = Phi(u/2 - epsilon/u) - exp(epsilon) Phi(-u/2 - epsilon/u)``.

    Parameters
    ----------
    epsilon : float
        Privacy level, >= 0.
    delta : float
        In (0, 1).
    sensitivity : float
        Largest Euclidean distance between the values of two neighbors, > 0.
    alongside : float
        The epsilon of a randomized response (or of any pure guarantee) that is released together with the noisy value;
        `epsilon` and `delta` then hold for both. In [0, epsilon).

    Returns
    -------
    float
        Never below the exact value, and above it by at most 1e-14 (1e-12 with `alongside`), relative.

    {domain}

    Notes
    -----
    Newton's method on a form of the profile that neither overflows nor cancels; about 2 microseconds.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang (2018), Improving the Gaussian mechanism for differential privacy, ICML.

    Examples
    --------
    >>> from quincunx.privacy import gaussian_sigma
    >>> round(gaussian_sigma(1.0, 1e-5), 12)
    3.730631634816
    >>> round(gaussian_sigma(1.0, 1e-5, alongside=0.5), 9)  # a basic split would need 7.0318
    6.807654951
    """
    epsilon, delta = _check.real(epsilon, "epsilon"), _check.real(delta, "delta")
    sensitivity, alongside = _check.real(sensitivity, "sensitivity", positive=True), _check.real(alongside, "alongside")
    if alongside:
        return _core.gaussian_sigma_alongside(epsilon, delta, sensitivity, alongside)
    return _core.gaussian_sigma(epsilon, delta, sensitivity)


@sections
def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Return the delta of Gaussian noise at a given epsilon.

    Parameters
    ----------
    epsilon : float
        Privacy level, >= 0. At 0 the result is the total variation distance.
    sigma : float
        Standard deviation of the noise, > 0.
    sensitivity : float
        Largest Euclidean distance between the values of two neighbors, > 0.

    Returns
    -------
    float
        Never below the exact value; above it by at most ``3e-16 (10 + x**2)``, relative, where ``phi(x)`` is about
        delta.

    {domain}

    Examples
    --------
    >>> from quincunx.privacy import gaussian_delta
    >>> round(gaussian_delta(1.0, 3.7306316348159), 15)
    1e-05
    """
    return _core.gaussian_delta(
        _check.real(epsilon, "epsilon"),
        _check.real(sigma, "sigma", positive=True),
        _check.real(sensitivity, "sensitivity", positive=True),
    )


@sections
def gaussian_epsilon(delta: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Return the epsilon of Gaussian noise at a given delta.

    Parameters
    ----------
    delta : float
        In (0, 1).
    sigma : float
        Standard deviation of the noise, > 0.
    sensitivity : float
        Largest Euclidean distance between the values of two neighbors, > 0 and at most 1e7 sigma.

    Returns
    -------
    float
        Never below the exact value; 0 where `delta` already bounds the total variation distance.

    {domain}

    Examples
    --------
    >>> from quincunx.privacy import gaussian_epsilon
    >>> round(gaussian_epsilon(1e-5, 3.7306316348159), 12)
    1.0
    """
    return _core.gaussian_epsilon(
        _check.real(delta, "delta"),
        _check.real(sigma, "sigma", positive=True),
        _check.real(sensitivity, "sensitivity", positive=True),
    )

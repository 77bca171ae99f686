"""How far the statistics of a regression move when one record is replaced."""

from quincunx import _check, _core

__all__ = ["linear_regression", "logistic_regression"]


def linear_regression(
    radius: float, response: float, *, ratios: tuple[float, float] = (1.0, 1.0), dimension: int | None = None
) -> float:
    """Sensitivity of the statistics ``[svec(x x'), y x, y**2]`` of linear regression.

    ``svec`` lists the upper triangle of a symmetric matrix, off-diagonal entries times sqrt 2. Noise of standard
    deviations s1, s2, s3 on the three blocks is calibrated as ``s1 = gaussian_sigma(epsilon, delta, sensitivity)``,
    ``s2 = s1 / sqrt(ratios[0])``, ``s3 = s1 / sqrt(ratios[1])``.

    Parameters
    ----------
    radius : float
        Bound of the Euclidean norm of x, > 0.
    response : float
        Bound of the absolute value of y, > 0.
    ratios : (float, float)
        ``(s1/s2)**2`` and ``(s1/s3)**2``, > 0.
    dimension : int, optional
        Length of x, >= 1. Records of length 1 move less; for all others, and by default, the answer is the same.

    Returns
    -------
    float
        Attained by a pair of records; times 1 + 2**-40 for the rounding of the statistics.

    Raises
    ------
    ValueError
        If an argument is not positive and finite.
    TypeError
        If `ratios` is not a pair, or `dimension` is not whole.

    Examples
    --------
    >>> from quincunx.privacy import sensitivity
    >>> round(sensitivity.linear_regression(1.0, 2.0), 9)  # sqrt(22); the published formula gives sqrt(34)
    4.69041576
    >>> round(sensitivity.linear_regression(1.0, 2.0, dimension=1) ** 2, 9)
    21.0
    """
    if not (isinstance(ratios, (tuple, list)) and len(ratios) == 2):
        raise TypeError(f"`ratios` must be a pair of numbers, got {ratios!r}")
    return _core.linear_regression_sensitivity(
        _check.real(radius, "radius", positive=True),
        _check.real(response, "response", positive=True),
        _check.real(ratios[0], "ratios", positive=True),
        _check.real(ratios[1], "ratios", positive=True),
        _is_line(dimension),
    )


def _is_line(dimension: int | None) -> bool:
    return dimension is not None and _check.whole(dimension, "dimension", minimum=1) == 1


def logistic_regression(radius: float, *, ratio: float = 1.0, dimension: int | None = None) -> float:
    """Sensitivity of the statistics ``[y x, svec(x x')]`` of logistic regression, y = -1 or 1.

    Parameters
    ----------
    radius : float
        Bound of the Euclidean norm of x, > 0.
    ratio : float
        ``(s1/s2)**2`` for noise of standard deviations s1 on ``y x`` and s2 on ``svec(x x')``, > 0.
    dimension : int, optional
        Length of x, >= 1. Records of length 1 move less; for all others, and by default, the answer is the same.

    Returns
    -------
    float
        In units of s1. Attained by a pair of records; times 1 + 2**-40 for the rounding of the statistics.

    Raises
    ------
    ValueError
        If an argument is not positive and finite.
    TypeError
        If `dimension` is not whole.

    Examples
    --------
    >>> from quincunx.privacy import sensitivity
    >>> round(sensitivity.logistic_regression(1.0, ratio=0.2) ** 2, 9)  # the published formula gives 4.9
    4.0
    """
    return _core.logistic_regression_sensitivity(
        _check.real(radius, "radius", positive=True), _check.real(ratio, "ratio", positive=True), _is_line(dimension)
    )

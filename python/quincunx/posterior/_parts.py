"""Parts that docstrings of this room share."""

from quincunx._docs import assembled

posterior_doc = assembled(
    vectors="""
    Parameters
    ----------
    data : array_like of float, shape (n, d)
        Each record is clipped to `data_bound` by itself; one that is not finite becomes 0.
    """,
    shaped="""
    Raises
    ------
    TypeError, ValueError
        If `data` has another shape or does not hold numbers.
    """,
    numbers="""
    Raises
    ------
    TypeError, ValueError
        If `data` does not hold numbers along one axis.
    """,
    knob="""
    knob : {"trim", "temper"}, optional
        What is changed; by default `temper` (never above what it is) where there is a trimming, else `trim`.
    """,
    neighbors="""
    Parameters
    ----------
    relation : ReplaceOne or AddRemove
        About which neighbors.
    """,
    centred="""
    Parameters
    ----------
    a0, rate, bounds, data_bound, temper
        As for `ExponentialGamma`; records are clipped to [-data_bound, data_bound].
    mean : float
        Known.
    """,
    study="""
    Parameters
    ----------
    n : int
        Records.

    Returns
    -------
    LipschitzConstants
    """,
)

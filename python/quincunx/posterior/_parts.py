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
    of_releases="""
    Parameters
    ----------
    g : PrivacyGuarantee
        Of a release, or of several (``n * g``).

    Returns
    -------
    float
    """,
    no_guarantee="""
    Raises
    ------
    TypeError
        If `g` is no guarantee.
    """,
    node="""
    Parameters
    ----------
    node : object
        Of the graph.
    """,
    query="""
    Parameters
    ----------
    nodes : iterable
        Nodes of the graph, the axes of the result.
    given : mapping, optional
        Of node to a declared category.
    """,
    no_query="""
    Raises
    ------
    ValueError, TypeError
        If a node is not of the graph, is asked for twice or asked for and given, a category is not declared, or what
        is given has probability 0, or is no mapping.
    TooLargeError
        If a table on the way needs more memory than is available.
    """,
    declared="""
    domain : mapping of column to int or sequence
        What each column may hold, declared and never inferred from data: a number k for the codes 0..k-1, or labels.
        Numbers are binned before, at edges that are chosen without looking at the data.
    """,
    protected="""
    relation : ReplaceOne or AddRemove
        Who is protected. With `ReplaceOne` the number of records is public, and used; with `AddRemove` it is known by
        the noisy tables alone.
    """,
    draws="""
    Parameters
    ----------
    size : int
        Draws; each costs its epsilon.
    private : bool
        Exactly the law that the guarantee is about, by bits of a generator that the operating system keys. False:
        without a guarantee, by a generator that `rng` gives.
    relation : ReplaceOne or AddRemove
        Of the guarantee.
    insecure_seed : int, optional
        Makes private draws repeatable, for tests: they protect nothing then, and the guarantee says so.
    rng : None, int, SeedSequence, BitGenerator or Generator
        For draws that are not private.
    """,
    target="""
    Parameters
    ----------
    epsilon : float
        Target, > 0.
    n : int, optional
        Records, public: spends all of epsilon at this n. Else for every n.
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

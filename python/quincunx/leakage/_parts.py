"""Parts that docstrings of this room share."""

from quincunx._docs import assembled

leakage_doc = assembled(
    prior="""
    Parameters
    ----------
    prior : array_like of float, shape (n_inputs,), optional
        Chances of the inputs; all equal if left out.
    """,
    alvim="""
    References
    ----------
    .. [1] M. Alvim, M. Andres, K. Chatzikokolakis and C. Palamidessi (2011), On the relation between differential
       privacy and quantitative information flow, ICALP.
    """,
    neighbors="""
    Parameters
    ----------
    graph : Graph, networkx graph, SciPy sparse matrix or pair (n, edges)
        Joins inputs that are neighbors.
    """,
    level="""
    threads : int, optional
        By default all this process may use.

    Returns
    -------
    float
        In nats.
    """,
    inputs="""
    Parameters
    ----------
    n : int
        Number of inputs, >= 1.
    epsilon : float
        In nats, >= 0; may be infinite.

    Returns
    -------
    Channel
    """,
)

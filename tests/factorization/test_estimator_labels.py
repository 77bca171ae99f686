"""Names of rows and columns go through a fit: from tables, releases and networks to draws and components."""

import io

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from sklearn.base import clone
from tests.saved import reread

from quincunx.factorization import (
    PoissonBlockmodel,
    PoissonDynamics,
    PoissonFactorization,
    PoissonTensorFactorization,
    cross_validate,
)
from quincunx.privacy import Release, privatize

pytestmark = pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")

SHORT = {"n_warmup": 10, "n_draws": 10, "thin": 2, "n_chains": 1, "random_state": 7}
RNG = np.random.default_rng(1)
COUNTS = RNG.poisson(RNG.gamma(0.5, 4.0, (12, 2)) @ RNG.gamma(0.5, 1.0, (2, 9)))
PEOPLE = [f"person{i}" for i in range(12)]
WORDS = [f"word{v}" for v in range(9)]
FRAME = pd.DataFrame(COUNTS, index=pd.Index(PEOPLE, name="who"), columns=WORDS)
NETWORK = RNG.poisson(1.0, (8, 8)) * (1 - np.eye(8, dtype=int))
NAMES = list("ABCDEFGH")


@pytest.mark.parametrize("kind", ["release", "release from a file", "frame", "data array"])
def test_a_fit_knows_rows_and_columns(kind):
    released = privatize(FRAME, epsilon=1.0, insecure_seed=1)
    if kind == "release from a file":
        file = io.BytesIO()
        released.save(file, format="csv")
        released = Release.load(io.BytesIO(file.getvalue()))
    if kind == "frame":
        released = released.to_pandas()
    if kind == "data array":
        released = xr.DataArray(released.to_pandas())
    model = PoissonFactorization(2, **SHORT).fit(released, alpha=None if "release" in kind else 0.36)
    assert model.feature_names_in_.tolist() == WORDS
    for fitted in (model, reread(model)):
        posterior = fitted.to_datatree()["posterior"]
        assert posterior["observation"].values.tolist() == PEOPLE
        assert posterior["feature"].values.tolist() == WORDS
        assert fitted.top_features(0, n=2)[0][0] in WORDS
        assert fitted.top_features(0, axis=0, n=12)[0][0] in PEOPLE


def test_set_output_gives_rows_their_labels():
    released = privatize(FRAME, epsilon=1.0, insecure_seed=1)
    model = PoissonFactorization(2, **SHORT).set_output(transform="pandas")
    for data in (released, FRAME):
        frame = clone(model).set_output(transform="pandas").fit_transform(data)
        assert frame.index.tolist() == PEOPLE
        assert frame.columns.tolist() == ["poissonfactorization0", "poissonfactorization1"]
    assert frame.index.name == "who"
    plain = clone(model).set_output(transform="default").fit(released)
    assert isinstance(plain.transform(released), np.ndarray)
    tensor = PoissonTensorFactorization(2, **SHORT).set_output(transform="pandas")
    assert tensor.fit_transform(released).index.tolist() == PEOPLE


def test_other_columns_than_those_of_the_fit_are_refused():
    model = PoissonFactorization(2, **SHORT).fit(privatize(FRAME, epsilon=1.0))
    model.transform(privatize(FRAME, epsilon=1.0))
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(privatize(FRAME[WORDS[::-1]], epsilon=1.0))


# Networks.


def network(kind):
    graph = nx.DiGraph()
    graph.add_nodes_from(NAMES)
    edges = [(NAMES[i], NAMES[j], int(NETWORK[i, j])) for i, j in zip(*NETWORK.nonzero(), strict=True)]
    if kind == "multigraph":
        graph = nx.MultiDiGraph(graph)
        graph.add_edges_from((a, b) for a, b, n in edges for _ in range(n))
        return graph
    if kind == "graph":
        graph.add_weighted_edges_from(edges)
        return graph
    table = pd.DataFrame(edges, columns=["sender", "receiver", "count"])
    if kind == "long series":
        return table.set_index(["sender", "receiver"])["count"]
    return table if kind == "long frame" else pd.DataFrame(NETWORK, index=NAMES, columns=NAMES)


@pytest.mark.parametrize("kind", ["graph", "multigraph", "long frame", "long series", "square frame"])
def test_a_network_is_fitted_in_any_form(kind):
    data = network(kind)
    model = PoissonBlockmodel(2, **SHORT).fit(data)
    actors = model.to_datatree()["posterior"]["actor"].values.tolist()
    assert sorted(actors) == NAMES
    order = [actors.index(name) for name in NAMES]
    values = model._posterior.problem.data.values
    np.testing.assert_array_equal(values[np.ix_(order, order)], NETWORK)
    assert {name for name, _ in model.top_features(1, n=8)} == set(NAMES)


@pytest.mark.filterwarnings("ignore::quincunx.errors.MisfitWarning")  # which is no Poisson network
def test_an_undirected_graph_is_fitted():
    graph = nx.les_miserables_graph()
    model = PoissonBlockmodel(3, directed=False, inference="vi", n_chains=1, max_iter=100, random_state=1).fit(graph)
    assert "Valjean" in {name for top in model.top_features(n=3) for name, _ in top}
    release = privatize(graph, epsilon=50.0)
    assert (release.values == np.triu(nx.to_numpy_array(graph))).all()


def test_tables_that_contradict_themselves_are_refused():
    table = network("square frame")
    with pytest.raises(ValueError, match="same labels in the same order"):
        PoissonBlockmodel(2, **SHORT).fit(table[NAMES[::-1]])
    long = network("long frame")
    with pytest.raises(ValueError, match=r"one line for each cell, got several for \(\w, \w\)"):
        PoissonBlockmodel(2, **SHORT).fit(pd.concat([long, long.iloc[:1]]))
    with pytest.raises(ValueError, match="must have a line for each cell where there is noise"):
        PoissonBlockmodel(2, **SHORT).fit(long, alpha=0.5)
    with pytest.raises(ValueError, match="no missing labels"):
        PoissonBlockmodel(2, **SHORT).fit(long.replace("A", None))


def test_a_long_table_of_three_keys_is_a_tensor():
    index = pd.MultiIndex.from_product([list("ab"), [2001, 2002, 2003], ["x", "y"]], names=["city", "year", "sex"])
    series = pd.Series(range(12), index=index)[::-1]
    model = PoissonTensorFactorization(2, **SHORT).fit(series)
    assert model.rates_.shape == (2, 3, 2)
    tree = model.to_datatree()
    assert tree["posterior"]["axis_1"].values.tolist() == [2001, 2002, 2003]
    observed = tree["observed_data"]["released"]
    for key, count in series.items():
        assert observed.sel(axis_0=key[0], axis_1=key[1], axis_2=key[2]) == count


def test_entries_of_one_place_in_a_sparse_table_are_all_counted():
    calls = scipy.sparse.coo_array((np.ones(300, dtype=np.uint8), np.tile([[0], [1]], 300)), shape=(2, 2))
    assert PoissonFactorization(1)._checked_values(calls, reset=True).tolist() == [[0, 300], [0, 0]]


def test_sparse_networks_and_tables_are_fitted():
    plain = PoissonBlockmodel(2, **SHORT).fit(NETWORK)
    np.testing.assert_array_equal(
        PoissonBlockmodel(2, **SHORT).fit(scipy.sparse.csr_array(NETWORK)).embedding_, plain.embedding_
    )


# Communities.


def planted(directed=True):
    group = np.arange(30) % 3
    rates = np.where(group[:, None] == group, 8.0, 0.3)
    counts = np.random.default_rng(5).poisson(rates)
    return group, counts if directed else np.triu(counts)


def agree(labels, group):
    """Say whether two partitions are the same."""
    pairs = set(zip(labels.tolist(), group.tolist(), strict=True))
    return len(pairs) == len(set(group.tolist())) == len(set(labels.tolist()))


@pytest.mark.parametrize("directed", [True, False])
def test_planted_communities_are_found_and_new_actors_join_them(directed):
    group, counts = planted(directed)
    model = PoissonBlockmodel(
        3, directed=directed, inference="vi", max_iter=2000, tol=1e-6, n_chains=16, random_state=2
    )
    labels = model.fit_predict(privatize(counts, epsilon=2.0, insecure_seed=1))
    assert agree(labels, group)
    new = np.random.default_rng(6).poisson(np.where(np.arange(6)[:, None] % 3 == group, 8.0, 0.3))
    found = model.predict(privatize(new, epsilon=2.0, insecure_seed=2))
    assert agree(np.concatenate([labels, found]), np.concatenate([group, np.arange(6) % 3]))
    assert model.predict(new[:1]).tolist() == found[:1].tolist()
    scaled = clone(model)
    scaled.__dict__.update(model.__dict__)
    scale = np.array([1.0, 50.0, 0.02])  # the factors of any scale give the same rates, and the same labels
    scaled.embedding_, scaled.interaction_ = model.embedding_ * scale, model.interaction_ / np.outer(scale, scale)
    np.testing.assert_array_equal(scaled.labels_, labels)
    with pytest.raises(ValueError, match="30 features"):
        model.predict(new[:, :5])


@pytest.mark.parametrize("name", ["mask", "alpha"])
def test_tables_of_cells_with_other_labels_are_refused(name):
    counts = pd.DataFrame(np.arange(20).reshape(4, 5), columns=list("abcde"))
    kind = bool if name == "mask" else float
    table = pd.DataFrame(np.zeros((4, 5), dtype=kind), columns=list("abcde"))
    table["e"] = True if name == "mask" else 0.5
    model = PoissonFactorization(2, n_warmup=2, n_draws=2, random_state=0)
    held = model.fit(counts, **{name: table})._posterior.problem.data
    assert (held.held_out if name == "mask" else held.alpha)[0].tolist() == table.iloc[0].tolist()
    model.fit(counts, **{name: table.to_numpy()})
    for released in (counts, privatize(counts, epsilon=1.0)):
        if name == "alpha" and released is not counts:
            continue  # a release knows its own
        with pytest.raises(ValueError, match=f"`{name}` must have the labels of `released`, in their order: axis 1"):
            model.fit(released, **{name: table[list("edcba")]})


def test_ratios_with_labels_have_all_axes():
    counts = pd.DataFrame(np.arange(9).reshape(3, 3), columns=list("abc"))
    model = PoissonFactorization(2, **SHORT)
    ratios = np.array([0.1, 0.2, 0.3])
    assert model.fit(counts, alpha=ratios)._posterior.problem.data.alpha[2].tolist() == ratios.tolist()
    square = xr.DataArray(counts, dims=("row", "column"))
    for released, alpha in (
        (counts, pd.Series(ratios, index=list("cba"))),
        (square, xr.DataArray(ratios, dims="row")),  # which would go along the columns
    ):
        with pytest.raises(ValueError, match="`alpha` must have the 2 axes of `released` where both have labels"):
            model.fit(released, alpha=alpha)


def test_priors_with_labels_have_those_of_their_axis_and_are_saved():
    counts = pd.DataFrame(np.arange(15).reshape(5, 3), columns=list("abc"))
    words = pd.Series([0.1, 0.2, 0.3], index=list("abc"))
    for name, value in (("prior_shape", (0.1, words)), ("topic_concentration", words)):
        model = PoissonFactorization(2, topics="gamma" if name == "prior_shape" else "dirichlet", **SHORT)
        fitted = reread(model.set_params(**{name: value}).fit(counts))
        kept = getattr(fitted, name)
        assert (kept[1] if isinstance(kept, tuple) else kept).tolist() == words.tolist()
        assert fitted.set_params(warm_start=True).fit(counts).n_iter_ == 50
        with pytest.raises(ValueError, match=f"`{name}` must have the labels of `released`, in their order"):
            model.fit(counts[list("cba")])


def of_pandas(library, frame):
    """Return a table of another library."""
    pytest.importorskip("dask.dataframe" if library == "dask" else library)
    if library == "dask":
        import dask.dataframe

        return dask.dataframe.from_pandas(frame, npartitions=2)
    if library == "polars":
        import polars

        return polars.DataFrame(frame.to_dict("list"))
    import pyarrow

    return pyarrow.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("library", ["dask", "polars", "pyarrow"])
def test_columns_of_other_libraries_have_names(library):
    counts = pd.DataFrame(np.arange(20).reshape(4, 5), columns=list("abcde"))
    released, mask = (of_pandas(library, table) for table in (counts, counts > 15))
    model = PoissonFactorization(2, topics="dirichlet", inference="vi", max_iter=5, random_state=0)
    fitted = model.fit(released, mask=mask)
    assert {name for name, _ in fitted.top_features(0, n=5)} == set("abcde")
    assert fitted._posterior.problem.data.held_out.sum() == 4
    assert privatize(counts, epsilon=1.0).axes_[1].labels == tuple("abcde")
    other = of_pandas(library, (counts > 15)[list("edcba")])
    with pytest.raises(ValueError, match="`mask` must have the labels of `released`, in their order: axis 1"):
        model.fit(counts, mask=other)
    assert np.isfinite(fitted.coherence(counts)).all()
    with pytest.raises(ValueError, match="`counts` must have the labels of the fit, in their order: axis 1"):
        fitted.coherence(of_pandas(library, counts[list("edcba")]))
    if library == "dask":
        return  # whose tables are not looked into
    edges = pd.DataFrame({"sender": list("abca"), "receiver": list("bcac"), "count": [1, 2, 3, 4]})
    network = PoissonBlockmodel(1, **SHORT).fit(of_pandas(library, edges))
    assert network._posterior.problem.data.values.tolist() == [[0, 1, 4], [0, 0, 2], [3, 0, 0]]


def test_numbers_of_rows_in_another_order_than_those_of_no_labels_are_refused():
    counts = pd.DataFrame(np.arange(20).reshape(4, 5), columns=list("abcde"))
    turned = counts[::-1]
    model = PoissonFactorization(2, **SHORT)
    for released, mask in ((turned, counts > 15), (counts, turned > 15)):
        with pytest.raises(ValueError, match="`mask` must have the labels of `released`, in their order: axis 0"):
            model.fit(released, mask=mask)
    model.fit(turned, mask=turned.to_numpy() > 15)
    model.fit(counts[2:], mask=(counts[2:] > 15).reset_index(drop=True))  # which says that it goes by position


def test_masks_and_ratios_of_the_types_of_pandas_are_taken():
    counts = pd.DataFrame(np.arange(20).reshape(4, 5)).astype("Int64")
    model = PoissonFactorization(2, **SHORT).fit(counts, mask=counts > 15, alpha=(counts / 40).astype("Float64"))
    data = model._posterior.problem.data
    assert data.held_out.tolist() == (np.arange(20).reshape(4, 5) > 15).tolist()
    assert data.alpha[1].tolist() == (np.arange(5, 10) / 40).tolist()
    error = model.heldout_error(counts)
    for table in (scipy.sparse.csr_array(counts.to_numpy(dtype=int)), counts.to_numpy(dtype=int)):
        assert model.heldout_error(table) == error
    gaps = pd.DataFrame({"s": list("ab"), "r": list("ba"), "n": pd.array([True, None], dtype="boolean")})
    with pytest.raises(ValueError, match="`released` must hold finite numbers"):
        PoissonBlockmodel(1, **SHORT).fit(gaps)


def test_directed_graphs_are_undirected_where_no_pair_is_joined_both_ways():
    graph = nx.DiGraph([("a", "b", {"weight": 5}), ("c", "a", {"weight": 2}), ("b", "c")])
    model = PoissonBlockmodel(1, directed=False, **SHORT)
    assert model.fit(graph)._posterior.problem.data.values.tolist() == [[0, 5, 2], [0, 0, 1], [0, 0, 0]]
    graph.add_edge("b", "a")
    with pytest.raises(ValueError, match="one line for each pair of actors, got both ways of one"):
        model.fit(graph)


def test_new_data_with_other_labels_than_the_fit_s_are_refused():
    counts = np.random.default_rng(0).poisson(np.array([1.0, 10, 100])[None, :, None] * np.ones((4, 3, 2)))

    def lines(order):
        cells = {(i, a, t): int(counts[i, "xyz".index(a), t]) for i in range(4) for a in order for t in range(2)}
        return pd.Series(cells)

    tensor = PoissonTensorFactorization(1, inference="vi", random_state=0).fit(lines("xyz"))
    assert np.isfinite(tensor.score(lines("xyz")))
    with pytest.raises(ValueError, match="`released` must have the labels of the fit, in their order: axis 1"):
        tensor.score(lines("zyx"))
    table = pd.DataFrame(counts[:, :, 0], columns=[4, 7, 9])
    matrix = PoissonFactorization(1, inference="vi", random_state=0).fit(table)
    new = table.rename(index=lambda row: row + 10)  # rows are others each time
    assert matrix.transform(new).shape == (4, 1)
    with pytest.raises(ValueError, match="axis 1 has"):
        matrix.transform(table[[9, 7, 4]])
    with pytest.raises(ValueError, match="`counts` must have the labels of the fit"):
        matrix.heldout_error(table[[9, 7, 4]], np.eye(4, 3, dtype=bool))


def test_masks_folds_and_proportions_with_other_labels_are_refused():
    model = PoissonFactorization(2, inference="vi", random_state=0).fit(FRAME)
    mask, folds = pd.DataFrame(FRAME > 2), pd.DataFrame(np.arange(FRAME.size).reshape(FRAME.shape) % 2)
    folds = folds.set_axis(FRAME.index).set_axis(FRAME.columns, axis=1)
    shares = pd.DataFrame(model.proportions_, index=FRAME.index)
    for judge, table, name in (
        (lambda table: model.heldout_error(FRAME, table), mask, "mask"),
        (lambda table: model.heldout_log_probability(FRAME, table), mask, "mask"),
        (lambda table: cross_validate(FRAME, n_components=[1, 2], folds=table, model=model).means[0], folds, "folds"),
        (lambda table: model.perplexity(FRAME, proportions=table), shares, "proportions"),
    ):
        assert np.isfinite(judge(table))
        with pytest.raises(ValueError, match=f"`{name}` must have the labels of "):
            judge(table.iloc[::-1])


def test_axes_in_another_order_are_refused_by_their_names():
    cube = xr.DataArray(np.random.default_rng(0).poisson(5.0, (3, 3, 3)), dims=("s", "r", "t"))
    turned = cube.transpose("r", "s", "t")
    model = PoissonTensorFactorization(1, inference="vi", random_state=0).fit(cube)
    assert np.isfinite(model.score(cube))
    for judge in (model.score, model.heldout_error, lambda table: model.heldout_error(cube, table > 2)):
        with pytest.raises(ValueError, match="must have the axes of the fit, in their order"):
            judge(turned)
    with pytest.raises(ValueError, match="`mask` must have the axes of `released`, in their order"):
        model.fit(cube, mask=turned > 9)


@pytest.mark.parametrize(
    "times",
    [
        pd.period_range("2020-01", periods=6, freq="M"),
        pd.timedelta_range("1h", periods=6),
        pd.interval_range(0, 6),
        pd.date_range("2020-01-01", periods=6),
        pd.date_range("2020-01-01", periods=6, freq="3ns"),
        pd.Index([np.nan, 1.0, 2.0, 3.0, 4.0, 5.0]),
        pd.Index(list("abcdef")),
    ],
    ids=["periods", "durations", "intervals", "days", "nanoseconds", "missing", "words"],
)
def test_a_fit_from_a_file_knows_its_own_data(times):
    table = pd.DataFrame(COUNTS[:6], index=times)
    model = PoissonDynamics(1, **SHORT).fit(table)
    for fitted in (model, reread(model)):
        assert np.isfinite(fitted.score(table))
        with pytest.raises(ValueError, match="axis 0 has"):
            fitted.score(table.iloc[::-1])


def test_an_edge_of_an_undirected_list_may_be_told_from_either_end():
    edges = pd.DataFrame({"s": list("abca"), "r": list("bcad"), "n": [50, 60, 70, 1]})
    model = PoissonBlockmodel(1, directed=False, n_warmup=2, n_draws=2)
    held = model.fit(edges)._posterior.problem.data
    assert held.values.tolist() == [[0, 50, 70, 1], [0, 0, 60, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    both = pd.concat([edges, pd.DataFrame({"s": ["b"], "r": ["a"], "n": [3]})])
    with pytest.raises(ValueError, match="one line for each pair of actors"):
        model.fit(both)
    three = edges[:3]
    assert model.fit(three)._posterior.problem.data.values.tolist() == [[0, 50, 70], [0, 0, 60], [0, 0, 0]]
    codes = three.assign(s=[0, 1, 2], r=[1, 2, 0])
    with pytest.raises(ValueError, match="the matrix of three nodes or a list of edges"):
        model.fit(codes)
    matrix = pd.DataFrame(codes.to_numpy(), index=list("abc"), columns=list("abc"))
    assert model.fit(matrix)._posterior.problem.data.shape == (3, 3)

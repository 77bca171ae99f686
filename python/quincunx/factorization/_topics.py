"""Topics: Dirichlet priors of the components of a matrix, shares of topics and words, perplexity and coherence.

    embedding[d, k] ~ Gamma(prior_shape, prior_rate),  components[k] ~ Dirichlet(topic_concentration)

Independent gammas of one rate are a Dirichlet vector times a gamma length that is independent of it: this is latent
Dirichlet allocation (Blei, Ng and Jordan 2003, section 3) with Poisson lengths of documents. The sweep is the core's:
after the counts and their parts y[d, v, k], the noise summed out,

    embedding[d, k] ~ Gamma(prior_shape + sum_v y[d, v, k], prior_rate + 1),
    components[k] ~ Dirichlet(topic_concentration + sum_d y[d, :, k]).

The exposure is one because rows of components sum to one over all cells, so counts of those held out are drawn, too.
In layers the shapes of the embedding are mixtures of another, and so on: a gamma belief network (Zhou, Cong and Chen
2016), see the core's `layers.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core, _tables
from quincunx._inference import parameters
from quincunx._types import Array, Facts, Floats
from quincunx.factorization._data import Counts, Given
from quincunx.factorization._layout import Layout, PriorLike
from quincunx.factorization._transform import RowTransformer
from quincunx.privacy._release import Release

#: Rates of gamma laws unless they are given. A row is exposed to one where topics sum to one, and a rate b then makes
#: documents shorter by the share b / (1 + b); components of gamma laws make up for any rate.
_RATES = {"gamma": 1.0, "dirichlet": 0.01}


@parameters
class Topics(RowTransformer):
    """A matrix whose components may be topics: what is known of words and documents by them."""

    PUBLISHED: ClassVar = RowTransformer.PUBLISHED | {"proportions_": "released", "topics_": "released"}

    n_components: int | Sequence[int] = field(default=10, kw_only=False)  # type: ignore[assignment]
    prior_rate: PriorLike | None = None  # type: ignore[assignment]
    components_: Floats = field(init=False)
    topics: Literal["gamma", "dirichlet"] = "gamma"
    topic_concentration: npt.ArrayLike = 0.1

    def _sizes(self) -> Facts:
        if isinstance(self.n_components, (Sequence, np.ndarray)) and not isinstance(self.n_components, str):
            return {"n_components": [_check.whole(one, "n_components", minimum=1) for one in self.n_components]}
        return super()._sizes()

    def _check_parameters(self, *executor: Executor | None) -> None:
        super()._check_parameters(*executor)
        _check.one_of(self.topics, "topics", ("gamma", "dirichlet"))
        if isinstance(numbers := self._sizes()["n_components"], list):
            self._check_layers(numbers)
        if self.topics == "dirichlet" and self.method == "published":
            raise ValueError('`method` must not be "published" where `topics` is "dirichlet": no paper has it')

    def _check_layers(self, numbers: list[int]) -> None:
        """Refuse layers beside what they do not go with."""
        if len(numbers) < 2:
            raise ValueError(
                f"`n_components` must be a number or hold one for each of two layers or more, got {numbers}"
            )
        for name, goes in (("topics", "dirichlet"), ("inference", "mcmc")):
            if (value := getattr(self, name)) != goes:
                raise ValueError(f"`{name}` must be {goes!r} where `n_components` has layers, got {value!r}")
        if self.hyperpriors == "row":
            raise ValueError(
                "`hyperpriors` must be None or 'factor' where `n_components` has layers, got 'row': each row has a rate"
            )
        for name in ("prior_shape", "prior_rate", "topic_concentration"):
            if np.ndim(value := getattr(self, name)):
                raise ValueError(f"`{name}` must be a number where `n_components` has layers, got {value!r}")

    def _priors(self, layout: Layout) -> list[tuple[Floats, Floats]]:
        if layout.model == "layers":
            return self._priors_of_layers(layout)
        rate = _RATES[self.topics] if self.prior_rate is None else self.prior_rate
        if self.topics == "gamma":
            return layout.priors(self.prior_shape, rate)
        concentration = {"components": ("topic_concentration", self.topic_concentration)}
        return layout.priors(self.prior_shape, rate, concentration)

    def _priors_of_layers(self, layout: Layout) -> list[tuple[Floats, Floats]]:
        rate = _RATES["dirichlet"] if self.prior_rate is None else self.prior_rate
        given = {"prior_shape": self.prior_shape, "prior_rate": rate, "topic_concentration": self.topic_concentration}
        shape, rate, concentration = (
            np.array([_check.real(value, name, positive=True)]) for name, value in given.items()
        )
        # Of the embeddings nothing is looked at.
        pairs = [(shape, rate), (concentration, np.empty(0))] * ((len(layout.factors) - 2) // 2)
        return [*pairs, (shape, rate), (shape, rate)]

    @property
    def topics_(self) -> Floats:
        """The posterior mean of the shares of the columns in each component, by the best chain; rows sum to one.

        With Dirichlet priors these are `components_`. Computed when asked for.
        """
        return self._shares()[1].T.copy()

    @property
    def proportions_(self) -> Floats:
        """The posterior mean of the shares of the components in the rate of each row, by the best chain.

        Rows sum to one: for each draw ``embedding[d, k] * components[k].sum()`` is divided by its sum. Variational
        inference takes the shares of the means, which is the same where the rates of its laws are equal in a row.
        Computed when asked for.
        """
        return self._shares()[0]

    def _shares(self) -> tuple[Floats, Floats]:
        """Return the mean shares of components in rows, and of columns (n_features, n_components) in components."""
        posterior = self._lazily()
        if not posterior.sampled:
            embedding, components = posterior.means()
            return _shares(embedding * components.sum(axis=0)), _shares(components, axis=0)
        draws = posterior.best_tables()[:2]
        rows, columns = (np.zeros(table.shape[1:]) for table in draws)
        for embedding, components in zip(*draws, strict=True):
            rows += _shares(embedding * components.sum(axis=0))
            columns += _shares(components, axis=0)
        return rows / len(draws[0]), columns / len(draws[0])

    def perplexity(self, counts: Counts, *, mask: Given = None, proportions: npt.ArrayLike | None = None) -> float:
        """Return the perplexity of the words of documents, given their proportions of topics.

        ``exp(-sum_dv n[d, v] ln p[d, v] / sum_dv n[d, v])``, where ``p[d]`` is ``proportions[d] @ topics_`` divided by
        its sum over the cells that count: as uncertain as a choice between so many words.

        Parameters
        ----------
        counts : array_like, data frame, sparse array or Release, of shape (n, n_features)
            Public counts of words, taken as they are. The counts of a release are their expectations given the fit,
            which flatters it; to compare fits by a release take `score`, to which what is not known is noise.
        mask : array_like of bool, optional
            True where a cell does not count.
        proportions : array_like of shape (n, n_components), optional
            Shares of the topics in each document, as `proportions_` has them; by default those that `transform` finds
            from the cells that count. With those of a fit that was not shown some cells, and a `mask` of all others,
            this is how well the fit predicts them.

        Returns
        -------
        float
            At least 1; infinite where there is a word that has no share of any topic of its document.

        Raises
        ------
        ValueError, TypeError
            If the data are not what they should be, all counts are zero, or `proportions` come with a release.

        Notes
        -----
        A pass over all cells, in NumPy, and without `proportions` the cost of `transform`.

        References
        ----------
        .. [1] D. M. Blei, A. Y. Ng and M. I. Jordan (2003), Latent Dirichlet allocation, Journal of Machine Learning
           Research 3, section 7.1.

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.factorization import PoissonFactorization
        >>> words = [[4, 4, 0, 0], [6, 6, 0, 0], [0, 0, 5, 5], [0, 0, 3, 3]]
        >>> how = {"inference": "vi", "n_chains": 2, "max_iter": 5000, "random_state": 1}
        >>> model = PoissonFactorization(2, topics="dirichlet", topic_concentration=0.01, **how).fit(words)
        >>> round(model.perplexity(words), 1)
        2.0
        """
        from scipy.special import xlogy

        self._fitted()
        noisy = isinstance(counts, Release)
        data = self._data(counts, None if noisy else 0.0, mask, reset=False)
        components = self.components_
        if proportions is None:
            embedding = self._infer_rows(data, components)
            shares = _shares(embedding * components.sum(axis=1))
        else:
            if noisy:
                raise ValueError("`proportions` must be None with a release, whose counts are not known")
            _tables.refuse_other_labels(_tables.axes(proportions)[:1], data.axes[:1], "proportions", "`counts`")
            shares = _check.reals_where(proportions, "proportions", "at least 0", lambda x: x >= 0)
            if shares.shape != (expected := (len(data.values), len(components))):
                raise ValueError(f"`proportions` must have shape {expected}, got {shares.shape}")
        number: Floats = data.values.astype(np.float64)
        if noisy:
            rates = np.ascontiguousarray(embedding @ components).reshape(-1)
            used, shapes = _check.threads(self.threads), self._shapes(new_rows=True)
            number = _core.expected_counts(data.counts, rates, used, shapes).reshape(data.shape)
        number = np.where(data.observed, number, 0.0)
        if not number.sum() > 0:
            raise ValueError("`counts` must hold a count above 0 in a cell that counts, got none")
        chances = _shares(np.where(data.observed, shares @ _shares(components), 0.0))
        return float(np.exp(-xlogy(number, chances).sum() / number.sum()))

    def coherence(self, counts: Counts, measure: Literal["umass", "npmi"] = "umass", n: int = 10) -> Floats:
        """Return how often the first words of each topic stand together in the documents of a public corpus.

        With D the number of documents, D(v) and D(u, v) those that have a word and those that have both, and the `n`
        first words of a topic in their order, the mean over pairs of words, u after v, of

        - ``"umass"`` [1]_: ``ln((D(u, v) + 1) / D(v))``, where no document has v ``-ln D``, the least there can be;
        - ``"npmi"`` [2]_: ``ln(D D(u, v) / (D(u) D(v))) / -ln(D(u, v) / D)``, from -1, where no document has both, to
          1, where each has both or none; 0 where all have both.

        Parameters
        ----------
        counts : array_like, data frame or sparse array, of shape (n_documents, n_features)
            Public counts, of other documents too: whether each is above 0. Of private ones this would publish a
            function without noise; and of a release, which is refused, up to half of the zeros are above 0.
        measure : {"umass", "npmi"}
            Which mean.
        n : int
            How many words of each topic, at least 2; those of `top_features`, all of them where there are fewer.

        Returns
        -------
        ndarray of float64, shape (n_components,)
            In nats for ``"umass"``, whose sum over pairs, as in [1]_, is ``n (n - 1) / 2`` times as large; NaN where
            there is one word only.

        Raises
        ------
        ValueError, TypeError
            If there is no fit, the data are not what they should be or a release, or `n` is below 2.

        Notes
        -----
        ``n_components n**2 n_documents`` steps, in NumPy.

        References
        ----------
        .. [1] D. Mimno, H. Wallach, E. Talley, M. Leenders and A. McCallum (2011), Optimizing semantic coherence in
           topic models, EMNLP.
        .. [2] G. Bouma (2009), Normalized (pointwise) mutual information in collocation extraction, GSCL.

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.factorization import PoissonFactorization
        >>> words = [[4, 4, 0, 0], [6, 6, 0, 0], [0, 0, 5, 5], [0, 0, 3, 3]]
        >>> how = {"inference": "vi", "n_chains": 2, "max_iter": 5000, "random_state": 1}
        >>> model = PoissonFactorization(2, topics="dirichlet", topic_concentration=0.01, **how).fit(words)
        >>> model.coherence(words, "npmi", n=2)
        array([1., 1.])
        """
        self._fitted()
        _check.one_of(measure, "measure", ("umass", "npmi"))
        if isinstance(counts, Release):
            raise ValueError("`counts` must be public counts, got a release, whose noise is in most cells")
        of_fit = self._posterior.problem.data.axes
        _tables.refuse_other_labels(_tables.axes(counts), of_fit, "counts", "the fit", first=1)
        components = self.components_
        number = _check.whole(n, "n", minimum=2)
        present = _presence(counts, components.shape[1])
        found = []
        for topic in components:
            first = np.argsort(-topic, kind="stable")[:number]
            found.append(_coherence(present(first), measure))
        return np.array(found)


def _shares(table: Floats, axis: int = -1) -> Floats:
    """Return a table divided by its sums along an axis; even shares where all has underflowed."""
    sums = table.sum(axis=axis, keepdims=True)
    found: Floats = np.full(table.shape, 1.0 / table.shape[axis])
    np.divide(table, sums, out=found, where=sums > 0)
    return found


def _presence(counts: Counts, columns: int) -> Callable[[Array], Array]:
    """Return a function that tells in which documents some words are: zeros and ones, sparse where the counts are."""
    sparse = _tables.is_sparse(counts)
    table = counts if sparse else _check.counts(_tables.array(counts, "counts"), "counts")
    if table.ndim != 2 or table.shape[1] != columns or not table.shape[0]:
        raise ValueError(f"`counts` must have shape (n_documents, {columns}), got {table.shape}")
    if sparse:
        table = _tables.summed(table, "counts").tocsc()
        _check.counts(table.data, "counts")
    return lambda words: (table[:, words] > 0).astype(np.float64)


def _coherence(present: Array, measure: str) -> float:
    """Return the mean over pairs of columns of what is known of their documents."""
    documents, number = present.shape
    both = present.T @ present
    both = both if isinstance(both, np.ndarray) else both.toarray()
    later, earlier = np.tril_indices(number, -1)
    if number < 2:
        return math.nan
    single, joint = both.diagonal(), both[later, earlier]
    if measure == "umass":
        before = single[earlier]
        pairs = np.full(len(joint), -np.log(documents))
        np.log((joint + 1) / np.maximum(before, 1), out=pairs, where=before > 0)
        return float(pairs.mean())
    pairs = np.where(joint > 0, 0.0, -1.0)
    some = (joint > 0) & (joint < documents)
    chance = joint[some] / documents
    pairs[some] = np.log(chance * documents**2 / (single[later] * single[earlier])[some]) / -np.log(chance)
    return float(pairs.mean())

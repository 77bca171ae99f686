"""Factorization of a matrix of counts: the topic model of rows and columns."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy.typing as npt

from quincunx import _check
from quincunx._inference import Schedule, parameters
from quincunx._sklearn import available_if, validation
from quincunx._types import Floats
from quincunx.factorization._chains import Problem
from quincunx.factorization._data import Counts, Data, Given
from quincunx.factorization._estimator import model_doc
from quincunx.factorization._layout import Factor, Layout
from quincunx.factorization._posterior import Posterior
from quincunx.factorization._stochastic import Batches
from quincunx.factorization._topics import Topics


@model_doc
@parameters
class PoissonFactorization(Topics):
    """Poisson factorization of a matrix of counts that was released with noise.

    ``released = count + noise``, ``count[d, v] ~ Poisson(sum_k embedding[d, k] components[k, v])``, the noise two-sided
    geometric of ratio alpha, and gamma priors on both factors; with documents as rows and words as columns this is a
    topic model [1]_. With ``topics="dirichlet"`` the rows of the components have Dirichlet priors: as
    ``embedding[d] = length[d] * proportions[d]`` with gamma lengths and, apart from them, Dirichlet proportions, this
    is latent Dirichlet allocation [3]_ whose lengths of documents stay private. With layers, ``n_components=(K, J)``,
    rows differ in the shapes of their embedding, which another embedding makes [4]_::

        embedding[d] ~ Gamma(embedding_2[d] @ components_2, layer_rates[d, 0])
        embedding_2[d] ~ Gamma(weights, layer_rates[d, 1])

    (shape, rate), so that topics which occur together belong to one component of the layer above.

    Parameters
    ----------
    n_components : int or sequence of int, default=10
        Number of components; of Dirichlet topics, with Gibbs sampling, also one for each of several layers, the lowest
        first.
    prior_shape, prior_rate : float or sequence, default=0.1 and 1.0, or 0.01 for Dirichlet topics
        Shape and rate of the gamma priors: a number, or a sequence with one entry for each factor (embedding,
        components), each a number or an array that broadcasts to the factor's shape. With ``topics="dirichlet"``
        they are those of the embedding, and a sequence has one entry; as each row is then exposed to exactly one, a
        rate ``b`` makes rows shorter than they are by the share ``b / (1 + b)``. With layers they are numbers, those
        of the weights of the highest components and of the rates of the embeddings of each row and layer.
    topics : {"gamma", "dirichlet"}, default="gamma"
        The prior of the components: gamma laws of the entries, or a Dirichlet law of each row, which then sums to one.
    topic_concentration : float or array_like, default=0.1
        Concentration of the Dirichlet laws: a number, which is that of all layers, or an array that broadcasts to
        (n_components, n_features). Without effect where ``topics="gamma"``.
    {inference}
    batch_size : int, default=256
        With ``inference="svi"``, stochastic variational inference [5]_ [6]_, the rows of a batch at the most; the rows
        at hand are divided as evenly as they can be. Batches are drawn without replacement, and an iteration is a pass
        over all rows. Each finds the embeddings of its rows as `transform` does, in up to 30 iterations, and moves the
        laws of the components by a share ``(t + learning_offset)**-learning_decay`` of the way to where they would be
        if all rows were like these, ``t = 0, 1, ...`` being the number of steps before.
    learning_offset, learning_decay : float, default=10.0 and 0.7
        At least 1, and within (0.5, 1], as scikit-learn's `LatentDirichletAllocation` has them.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the components, by the chain of highest mean log-likelihood: other chains label them
        otherwise.
    embedding_ : ndarray of shape (n_rows, n_components)
        Posterior mean of the rows' shares, by the same chain.
    topics_ : ndarray of shape (n_components, n_features)
        Posterior mean of the shares of the columns in each component, by the same chain: rows sum to one.
    proportions_ : ndarray of shape (n_rows, n_components)
        Posterior mean of the shares of the components in each row's rate, by the same chain: rows sum to one.
    rates_, expected_counts_ : ndarray of shape (n_rows, n_features)
        Posterior means of the rates and of the counts before noise, over all chains; computed when first asked for.
    layers_ : list of ndarray, each of shape (n_components of a layer, n_components of the one below)
        With layers, posterior mean of the shares of the components below in each component, by the same chain:
        ``layers_[0] @ components_`` are the words of the components of the second layer.
    priors_ : dict
        Shape and rate of each prior, by the name of its factor: posterior means where `hyperpriors` says that they are
        learnt. Each is one number, or of the shape of the factor, where a rate of each row (of the components: column)
        stands for each of its entries; a Dirichlet law has its concentration for a shape, and no rate. With layers that
        of the components alone.
    dispersion_ : float or ndarray
        Posterior mean of the dispersion of negative binomial counts, over all chains.
    draws_ : dict
        The kept draws ``"embedding"`` and ``"components"``, with axes (chain, draw, ...); with layers also
        ``"embedding_2"``, ``"components_2"``, ..., ``"layer_rates"`` and ``"weights"``.
    elbo_ : ndarray
        The ELBO after each iteration of variational inference. With ``"svi"``, for each pass the mean of the estimates
        that its batches give of it, each before its step: what `tol` judges, and below the ELBO at the end.
    n_iter_ : int
        Sweeps or iterations done.
    n_features_in_, feature_names_in_
        Columns, and their names where they have names.

    Notes
    -----
    The posterior is that of the papers [1]_ [2]_; their auxiliary variables are summed out, for ``P(count |
    released, rate)`` is a two-piece Poisson law (`quincunx.distributions.TwoPiecePoisson`). All sweeps run in the
    core without the interpreter. The draws depend on `random_state` alone: not on threads, executors, or stops in
    between. Kept draws take ``8 (n_rows + n_features) n_components`` bytes each, the data 1 byte per cell where they
    are within -128..127 and the method is not ``"bessel"``.

    With Dirichlet laws and a mask the counts of the cells held out are variables too, drawn in each sweep: exact, and
    ``total_rate`` is then that of all cells. Variational inference has them in its ELBO, with the law of a Poisson
    count at the geometric mean of the rate: it takes what it was not shown for somewhat smaller than it expects.

    References
    ----------
    .. [1] A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for
       count models, ICML.
    .. [2] A. Schein, Z. S. Wu, M. Zhou and H. Wallach (2018), Locally private Bayesian inference for count models,
       NeurIPS workshop on approximate Bayesian inference.
    .. [3] D. M. Blei, A. Y. Ng and M. I. Jordan (2003), Latent Dirichlet allocation, Journal of Machine Learning
       Research 3.
    .. [4] M. Zhou, Y. Cong and B. Chen (2016), Augmentable gamma belief networks, Journal of Machine Learning Research
       17.
    .. [5] M. D. Hoffman, D. M. Blei, C. Wang and J. Paisley (2013), Stochastic variational inference, Journal of
       Machine Learning Research 14.
    .. [6] P. Gopalan, J. M. Hofman and D. M. Blei (2015), Scalable recommendation with hierarchical Poisson
       factorization, UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.factorization import PoissonFactorization
    >>> from quincunx.privacy import privatize
    >>> rng = np.random.default_rng(1)
    >>> counts = rng.poisson(rng.gamma(0.5, 4.0, (30, 2)) @ rng.gamma(0.5, 1.0, (2, 20)))
    >>> release = privatize(counts, epsilon=1.0, insecure_seed=1)  # a seed protects nobody
    >>> model = PoissonFactorization(2, inference="vi", max_iter=5000, tol=1e-5, random_state=0).fit(release)
    >>> model.components_.shape, model.embedding_.shape, model.expected_counts_.shape
    ((2, 20), (30, 2), (30, 20))
    >>> bool(np.all(np.diff(model.elbo_) > -1e-6))
    True
    >>> lda = PoissonFactorization(2, topics="dirichlet", inference="vi", max_iter=5000, tol=1e-5, random_state=0)
    >>> bool(np.allclose(lda.fit(release).components_.sum(axis=1), 1.0))
    True
    >>> deep = PoissonFactorization((2, 2), topics="dirichlet", n_draws=1500, n_chains=2, random_state=0).fit(release)
    >>> deep.components_.shape, [layer.shape for layer in deep.layers_]
    ((2, 20), [(2, 2)])
    >>> by_batches = PoissonFactorization(2, inference="svi", batch_size=10, max_iter=50, tol=1e-4, random_state=0)
    >>> bool(abs(by_batches.fit(release).score(release) - model.score(release)) < 0.05)
    True
    """

    inference: Literal["mcmc", "vi", "svi"] = "mcmc"  # type: ignore[assignment]
    batch_size: int = 256
    learning_offset: float = 10.0
    learning_decay: float = 0.7

    _inferences: ClassVar = (*Topics._inferences, "svi")
    PUBLISHED: ClassVar = Topics.PUBLISHED | {"layers_": "released"}

    def _layout(self, shape: tuple[int, ...]) -> Layout:
        (rows, cols), numbers = shape, self._sizes()["n_components"]
        width, *above = numbers if isinstance(numbers, list) else [numbers]
        factors = (
            Factor("embedding", (rows, width), ("observation", "component")),
            Factor("components", (cols, width), ("component", "feature"), "transposed"),
        )
        if not above:
            return Layout("cp", (rows, cols), width, factors, ("observation", "feature"))
        layers: list[Factor] = []
        dim, below = "component", width
        for layer, number in enumerate(above, 2):
            name = f"component_{layer}"
            layers += [
                Factor(f"embedding_{layer}", (rows, number), ("observation", name), sets=(None, layer - 1)),
                Factor(f"components_{layer}", (below, number), (name, dim), "transposed", (layer - 2, layer - 1)),
            ]
            dim, below = name, number
        layers.append(Factor("layer_rates", (rows, len(above) + 1), ("observation", "layer"), sets=(None, None)))
        layers.append(Factor("weights", (1, below), (dim,), "vector", (None, len(above))))
        return Layout("layers", (rows, cols, *above), width, (*factors, *layers), ("observation", "feature"))

    # Stochastic inference.

    def _check_parameters(self, *executor: Executor | None) -> None:
        super()._check_parameters(*executor)
        _check.whole(self.batch_size, "batch_size", minimum=1)
        if not _check.real(self.learning_offset, "learning_offset") >= 1:
            raise ValueError(f"`learning_offset` must be at least 1, got {self.learning_offset}")
        if not 0.5 < _check.real(self.learning_decay, "learning_decay") <= 1:
            raise ValueError(f"`learning_decay` must be within (0.5, 1], got {self.learning_decay}")
        if self.inference == "svi":
            for name, only in (("hyperpriors", None), ("likelihood", "poisson")):
                if (value := getattr(self, name)) != only:
                    raise ValueError(f"`{name}` must be {only!r} with inference='svi', got {value!r}")

    def _problem(self, data: Data) -> Problem:
        problem = super()._problem(data)
        rows = data.shape[0]
        return replace(problem, batches=self._batches(rows, rows)) if self.inference == "svi" else problem

    def _batches(self, total: int, seen: int) -> Batches:
        return Batches(int(self.batch_size), float(self.learning_offset), float(self.learning_decay), total, seen)

    @available_if("inference", "svi")
    def partial_fit(
        self,
        released: Counts,
        y: object = None,
        *,
        alpha: Given = None,
        mask: Given = None,
        total_rows: int | None = None,
    ) -> Self:
        """Go on with rows that were not seen before: one pass over them in batches.

        There is no such method but with ``inference="svi"``. What is said of rows (`embedding_`, `rates_`,
        `expected_counts_`, `misfit_`) is then said of these.

        Parameters
        ----------
        released, y, alpha, mask
            As in `fit`, with as many columns as before.
        total_rows : int, optional
            The number of all rows that these are a sample of; by default those that were seen so far.

        Returns
        -------
        self

        Raises
        ------
        TooLargeError, ValueError, TypeError
            As `fit`; and if `total_rows` is less than the rows given.

        Examples
        --------
        >>> import numpy as np
        >>> from quincunx.factorization import PoissonFactorization
        >>> rng = np.random.default_rng(1)
        >>> topics = rng.gamma(0.5, 1.0, (2, 20))
        >>> model = PoissonFactorization(2, inference="svi", random_state=0)
        >>> for _ in range(20):
        ...     counts = rng.poisson(rng.gamma(0.5, 4.0, (50, 2)) @ topics)
        ...     model = model.partial_fit(counts, total_rows=1000)
        >>> model.n_iter_, model.components_.shape, model.embedding_.shape
        (20, (2, 20), (50, 2))
        """
        self._fit_or_restore(lambda: self._fit_partly(released, alpha, mask, total_rows))
        return self

    def _fit_partly(
        self, released: Counts, alpha: Given, mask: Given, total_rows: int | None
    ) -> tuple[bool, BaseException | None]:
        self._check_parameters(None)
        first = not hasattr(self, "_posterior")
        data = self._data(released, alpha, mask, reset=first)
        problem = self._problem(data)
        rows = len(data.values)
        if first:
            runs, seen = self._runs(problem), rows
        else:
            self._refuse_other_settings()
            runs = [replace(run, converged=False) for run in self._posterior.runs]
            seen = rows + int(runs[0].state["seen"][1])
        total = seen if total_rows is None else _check.whole(total_rows, "total_rows", minimum=rows)
        schedule = Schedule(max(run.iteration for run in runs) + 1, threads=self.threads)
        self._forecast(problem, runs, schedule)
        kept, stopped = self._infer(replace(problem, batches=self._batches(total, seen)), runs, schedule, None)
        # A run that did not come to its end has the rows of before.
        return kept and all(run.iteration == schedule.until for run in self._posterior.runs), stopped

    # Results.

    def _set_fitted(self, posterior: Posterior) -> None:
        super()._set_fitted(posterior)
        self.embedding_, components, *above = posterior.means()
        self.components_ = components.T.copy()
        self.__dict__.pop("layers_", None)
        if above:
            self.layers_ = [mixing.T.copy() for mixing in above[1:-2:2]]

    def _axis_factor(self, axis: int) -> Floats:
        return self.components_.T if axis else self.embedding_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def inverse_transform(self, embedding: npt.ArrayLike) -> Floats:
        """Return the rates of rows with a given embedding.

        Parameters
        ----------
        embedding : array_like of shape (n_rows, n_components)

        Returns
        -------
        ndarray of float64, shape (n_rows, n_features)

        Raises
        ------
        ValueError
            If its width is not the number of components.
        """
        self._fitted()
        _check.fits(embedding, "embedding")
        embedding = _check.computed(embedding)
        _check.refuse_masked(embedding, "embedding")
        rows: Floats = validation().check_array(embedding, input_name="embedding")
        if rows.shape[1] != len(self.components_):
            raise ValueError(f"`embedding` must have {len(self.components_)} columns, got {rows.shape[1]}")
        return rows @ self.components_

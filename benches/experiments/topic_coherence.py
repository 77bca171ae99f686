"""Coherence of topics found in private counts of words, beside those of true counts, naive fits and other programs.

    python benches/experiments/topic_coherence.py [--quick] [--data FOLDER] [--epsilon E] [--picture FILE]

Subject lines of Enron's mails, at most four words of each (`enron156_subject_docword.txt.gz` and
`enron156_messages.csv.gz` in the folder of QUINCUNX_DATA), are counted by sender and released so that whether a message
is there is protected with loss E: noise of E / 4 per count. Topics have Dirichlet laws, of known concentration or a
learnt one, or come in two layers; the naive fit takes positive releases for counts. Coherence, among senders and among
their single messages, looks at the true counts, for this experiment alone: to publish it would cost privacy.
Without the files, and with `--quick`, documents are drawn from topics instead. A line is the mean and standard error
over fits that differ in their seeds of noise and chains.

Source: D. Mimno et al. (2011), Optimizing semantic coherence in topic models; G. Bouma (2009) for the normalized one.
"""

import csv
import gzip
import math
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from common import arguments, plotting, save
from sklearn.decomposition import LatentDirichletAllocation

from quincunx.distributions import TwoSidedGeometric
from quincunx.factorization import PoissonFactorization

WORDS = 4


def enron(folder: Path) -> Any:
    """Return counts of the first words of subject lines by message, as a sparse array, and the sender of each."""
    with gzip.open(folder / "enron156_messages.csv.gz", "rt") as lines:
        sender = {int(row["message_id"]): int(row["sender"]) for row in csv.DictReader(lines)}
    with gzip.open(folder / "enron156_subject_docword.txt.gz", "rt") as lines:
        documents, words, _ = (int(next(lines)) for _ in range(3))
        message, word, times = np.loadtxt(lines, dtype=np.int64).T
    keep, before = np.zeros(len(times), dtype=np.int64), np.zeros(documents + 1, dtype=np.int64)
    for i in range(len(times)):
        keep[i] = min(times[i], WORDS - before[message[i]])
        before[message[i]] += keep[i]
    counts = scipy.sparse.coo_array((keep, (message - 1, word - 1)), (documents, words)).tocsr()
    filled = np.flatnonzero(counts.sum(axis=1))
    return counts[filled], np.array([sender[i + 1] - 1 for i in filled])


def drawn(rng: np.random.Generator) -> Any:
    """Return short messages of a few senders, from six topics."""
    topics, shares = rng.dirichlet(np.full(60, 0.05), 6), rng.dirichlet(np.full(6, 0.1), 20)
    sender = rng.integers(20, size=1500)
    topic = np.array([rng.choice(6, p=shares[s]) for s in sender])
    return scipy.sparse.csr_array(np.stack([rng.multinomial(WORDS, topics[k]) for k in topic])), sender


def of_gensim(counts: Any, rank: int, seed: int) -> Any:
    """Return the topics that gensim finds."""
    from gensim.models import LdaModel

    documents = [[(int(v), int(row[v])) for v in row.nonzero()[0]] for row in counts]
    prior = {"alpha": [0.1] * rank, "eta": 0.1, "passes": 50, "update_every": 0, "chunksize": len(documents)}
    topics = LdaModel(documents, num_topics=rank, random_state=seed, eval_every=None, **prior).get_topics()
    found = np.zeros((rank, counts.shape[1]))
    found[:, : topics.shape[1]] = topics  # it knows no words behind the last that occurs
    return np.maximum(found, 1e-12)


def main() -> None:
    parser = arguments(__doc__, quick="few documents, drawn from topics", data="subject lines")
    parser.add_argument("--epsilon", type=float, default=4.0, help="privacy loss of a message")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # short chains, and models that do not fit
    source = options.data / "enron156_subject_docword.txt.gz"
    real = not options.quick and source.is_file()
    if not real:
        print("made data: documents drawn from topics" + ("" if options.quick else f", as there is no {source}"))
    messages, sender = enron(options.data) if real else drawn(np.random.default_rng(1))
    rank, repetitions, sweeps = (options.topics, options.repetitions, 1000) if real else (6, 2, 100)
    by_sender = scipy.sparse.csr_array((np.ones(len(sender), dtype=np.int64), (sender, np.arange(len(sender)))))
    counts = (by_sender @ messages).toarray()
    used = counts.any(axis=1)
    counts = counts[used]
    alpha = math.exp(-options.epsilon / WORDS)
    print(
        f"{counts.shape[0]} senders x {counts.shape[1]} words, {counts.sum()} words of {messages.shape[0]} messages, "
        f"epsilon {options.epsilon:g} a message, {rank} topics"
    )
    found: dict[str, list[list[float]]] = {}
    for repetition in range(repetitions):
        rng = np.random.default_rng(repetition)
        noise = TwoSidedGeometric(epsilon_per_unit=options.epsilon / WORDS).sample(counts.shape, rng=rng)
        how = {"topics": "dirichlet", "topic_concentration": 0.1, "prior_shape": 0.1, "prior_rate": 0.01}
        run = {"n_warmup": sweeps, "n_draws": 100, "thin": 2, "n_chains": 1, "random_state": repetition}
        judge = PoissonFactorization(rank, inference="vi", max_iter=1, n_chains=1, random_state=0, **how).fit(counts)
        for name, released, law in [
            ("true counts", counts, 0.0),
            ("private", counts + noise, alpha),
            ("naive", np.maximum(counts + noise, 0), 0.0),
            ("true counts, variational", counts, 0.0),
            ("private, variational", counts + noise, alpha),
            ("true counts, learnt priors", counts, 0.0),
            ("private, learnt priors", counts + noise, alpha),
            ("true counts, two layers", counts, 0.0),
            ("private, two layers", counts + noise, alpha),
            ("scikit-learn, true counts", counts, None),
            ("scikit-learn, naive", np.maximum(counts + noise, 0), None),
            ("gensim, true counts", counts, None),
        ]:
            start = time.perf_counter()
            if name.startswith("gensim"):
                if find_spec("gensim") is None:
                    continue
                components = of_gensim(released, rank, repetition)
            elif law is None:
                prior = {"doc_topic_prior": 0.1, "topic_word_prior": 0.1, "max_iter": 50, "random_state": repetition}
                components = LatentDirichletAllocation(rank, **prior).fit(released).components_
            else:
                kind = {"inference": "vi", "max_iter": 300} if "variational" in name else {}
                kind |= {"hyperpriors": "factor"} if "learnt" in name else {}
                sizes = (rank, max(2, rank // 4)) if "layers" in name else rank
                model = PoissonFactorization(sizes, **how, **(run | kind)).fit(released, alpha=law)
                components = model.components_
            taken = time.perf_counter() - start
            judge.components_ = components / components.sum(axis=1, keepdims=True)
            told = [float(judge.coherence(counts, measure).mean()) for measure in ("umass", "npmi")]
            told.append(float(judge.coherence(messages, "npmi").mean()))
            perplexity = judge.perplexity(counts)
            found.setdefault(name, []).append([*told, perplexity, taken])
    if find_spec("gensim") is None:
        print("gensim is skipped: pip install gensim")
    heads = f"{'UMass':>16} {'NPMI':>16} {'NPMI, messages':>16} {'perplexity':>16} {'seconds':>8}"
    print(f"{'topics of':26} {heads}")
    for name, rows in found.items():
        mean = np.mean(rows, axis=0)
        error = np.std(rows, axis=0, ddof=1) / math.sqrt(len(rows))
        shown = " ".join(f"{m:8.3f} +- {e:4.3f}" for m, e in zip(mean[:3], error[:3], strict=True))
        print(f"{name:26} {shown} {mean[3]:8.1f} +- {error[3]:4.1f} {mean[4]:8.1f}")
    for kind in ("", ", learnt priors", ", two layers"):
        base, ours = (np.mean(found[name + kind], axis=0) for name in ("true counts", "private"))
        print(
            f"private beside true counts{kind}: UMass {ours[0] / base[0]:.3f}, NPMI {ours[1] / base[1]:.3f}, "
            f"among messages {ours[2]:.3f} and {base[2]:.3f}, perplexity {ours[3] / base[3]:.3f}"
        )
    if options.picture:
        draw_picture(options.picture, found)


def draw_picture(target: str, found: dict[str, list[list[float]]]) -> None:
    if (pyplot := plotting()) is None:
        return
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained", sharey=True)
    for place, (axis, name) in enumerate(zip(axes, ("UMass", "NPMI"), strict=True)):
        for k, rows in enumerate(found.values()):
            axis.plot([row[place] for row in rows], [k] * len(rows), "o")
        axis.set(yticks=range(len(found)), yticklabels=list(found), xlabel=f"mean coherence, {name}")
    save(figure, target)


if __name__ == "__main__":
    main()

"""Public data sets: where their files lie, what their bytes must be, and how they are read.

A source is one commit of a public repository, whose bytes are fixed by its name; the SHA-256 of each file was taken
from the objects of that commit. A copy is the same table in another container, which may lie in the folder instead.
The UCI repository gives its files no lasting names: Adult and the wines come from a public copy of it.
"""

import hashlib
import io
import json
import os
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple

from quincunx import _check
from quincunx._docs import assembled
from quincunx._npz import unpacked
from quincunx._optional import require
from quincunx._types import DataFrame

_HOME = "https://raw.githubusercontent.com"
_IPROC = f"{_HOME}/patperry/iproc/df7590b3f3b1a91e2008324a7b3afe9748f69e09/tests/enron"
_SUBSETS = f"{_HOME}/arbenson/discrete-subset-choice/a3035925d58e43760e697d783e20625ef442674b/data"
_UCI = f"{_HOME}/jbrownlee/Datasets/d20fcb6402ae34e653d4513b00f39257bb37ed7f"


_fetched = assembled(
    published="""
    Raises
    ------
    ImportError
        If pandas is not installed, or pooch where a file has to be fetched.
    OSError
        If a file is not in the folder and cannot be fetched.
    ValueError
        If a file in the folder does not have the checksum of the published one.
    """
)


class _File(NamedTuple):
    """A file: its name in the folder, the SHA-256 of its content when unpacked, and the folder it is published in."""

    name: str
    sha256: str
    home: str | None = None


_ADULT = {
    "train": [
        _File("adult-train.csv", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", _UCI),
        _File("adult_train.csv.gz", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    ],
    "test": [
        _File("adult-test.csv", "72567b94f5c1a6f8501377dd80f93892c3848ff071cf91ba47e00b0785a28074", _UCI),
        _File("adult_test.csv.gz", "72567b94f5c1a6f8501377dd80f93892c3848ff071cf91ba47e00b0785a28074"),
    ],
}
_WINE = {
    "red": [
        _File("winequality-red.csv", "c9614512e980f1cbd221c796daa97f00c4898c3cd1716863abac60f6cd1a522e", _UCI),
        _File("winequality_red.csv.gz", "228372b9c106bcbb50ce14bb616873495975bd761d2641cfd02900427f1ff8be"),
    ],
    "white": [
        _File("winequality-white.csv", "659d419fff887f225bf977d20520bb64a64cae203e460087f809721d4430ba27", _UCI),
        _File("winequality_white.csv.gz", "0f9b72c6f593bd8b91edc4f5584f0939849e843c3584a4a2fa5b6f2e25be5277"),
    ],
}
_KOSARAK = [
    _File("kosarak-5-25.txt", "a728b46014882389fd83de05e06e62fc563ce58838aeebbb5a8df649a3ed1f46", _SUBSETS),
    _File("kosarak_5_25.txt.gz", "a728b46014882389fd83de05e06e62fc563ce58838aeebbb5a8df649a3ed1f46"),
]
_MESSAGES = [
    _File("messages.json", "a39345784efdae22148befb3f0be6de1ba3e4a79c19b446e0ae41c264a21fa51", _IPROC),
    _File("enron156_counts.csv.gz", "7da26a54134bc4115464de80b847a6aa16093134a19385a976ed4175f36d0672"),
]
_ACTORS = [
    _File("actors.json", "dec234a6b2b2b97f52bb5288f4c0c97669f9b6b2187d16d6b6deca6e14f8f940", _IPROC),
    _File("enron156_actors.csv", "6ecc55c42bd76c1b3843ed4d5b4bc5f374fa473f2006a1c5e03b0ff795b0bfe7"),
]
_ADULT_COLUMNS = """age workclass weight education years marital occupation relationship race sex gain loss hours
    country income""".split()
_WINE_COLUMNS = """fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide
    total_sulfur_dioxide density pH sulphates alcohol quality""".split()


def folder() -> Path:
    """Return the folder that data are read from and fetched into.

    Returns
    -------
    Path
        The one that the environment variable QUINCUNX_DATA names, or else the cache that pooch has for this user.

    Raises
    ------
    ImportError
        If the variable is not set and pooch is not installed.

    Examples
    --------
    >>> import os
    >>> from quincunx.datasets import folder
    >>> os.environ["QUINCUNX_DATA"] = "data"
    >>> folder().name
    'data'
    >>> del os.environ["QUINCUNX_DATA"]
    """
    named = os.environ.get("QUINCUNX_DATA")
    return Path(named or require("pooch", "datasets").os_cache("quincunx")).expanduser()


def _content(files: list[_File]) -> tuple[io.BytesIO, str]:
    """Return the checked content of the first of these files that is in the folder, and its name; else fetch one."""
    here = folder()
    for file in files:
        path = here / file.name
        if path.is_file():
            content = path.read_bytes()
            content = unpacked(content, str(path)) if path.suffix == ".gz" else content
            if (found := hashlib.sha256(content).hexdigest()) != file.sha256:
                raise ValueError(f"{path}: the SHA-256 of its content must be {file.sha256}, got {found}")
            return io.BytesIO(content), file.name
    file = files[0]
    url, pooch = f"{file.home}/{file.name}", require("pooch", "datasets")
    try:
        pooch.retrieve(url, f"sha256:{file.sha256}", fname=file.name, path=here, progressbar=False)
    except OSError as error:  # of requests, too
        names = " or ".join(one.name for one in files)
        raise OSError(
            f"{url} could not be fetched ({type(error).__name__}); put {names} into {here}, or name the folder that "
            "has it in the environment variable QUINCUNX_DATA"
        ) from error
    return io.BytesIO((here / file.name).read_bytes()), file.name


class Enron(NamedTuple):
    """Mails among 156 employees of Enron.

    Attributes
    ----------
    messages : DataFrame
        How many mails went from whom to whom: columns `sender`, `receiver` and `messages`, 2715 rows. A mail to
        several people is counted for each.
    people : DataFrame
        For each `id`, 1 to 156: `department`, `long_department`, `title`, `gender`, `seniority`. The names of the
        source are left out.
    """

    messages: DataFrame
    people: DataFrame

    def matrix(self) -> DataFrame:
        """Return the counts as a table of all people.

        Returns
        -------
        DataFrame
            Shape (156, 156): rows are senders, columns receivers, the sum is 38388.
        """
        shape = {"index": "sender", "columns": "receiver", "values": "messages", "fill_value": 0}
        people = self.people.index
        return self.messages.pivot_table(**shape).reindex(index=people, columns=people, fill_value=0).astype("int64")


@_fetched
def fetch_enron() -> Enron:
    """Return the mails among 156 employees of Enron, from the corpus that the FERC published [1]_.

    Returns
    -------
    Enron
        Two tables: `messages` has 2715 pairs with 38388 mails, the largest count is 1168; `people` has 156 rows.

    {published}

    Notes
    -----
    Reads `messages.json` and `actors.json`, 3.7 MB, or copies of these tables, `enron156_counts.csv.gz` and
    `enron156_actors.csv`; 0.2 s.

    References
    ----------
    .. [1] P. O. Perry and P. J. Wolfe (2013), Point process modelling for directed interaction networks, Journal of
       the Royal Statistical Society B 75; the files are those of its program iproc.

    Examples
    --------
    >>> from quincunx.datasets import fetch_enron
    >>> mails, people = fetch_enron()  # doctest: +SKIP
    >>> len(mails), int(mails.messages.sum()), len(people)  # doctest: +SKIP
    (2715, 38388, 156)
    """
    pandas = require("pandas", "datasets")
    content, name = _content(_MESSAGES)
    if name.endswith(".json"):
        pairs = Counter[tuple[int, int]]()
        for message in json.load(content):
            to = message["receiver"]
            pairs.update((message["sender"], receiver) for receiver in (to if isinstance(to, list) else [to]))
        rows = sorted((*pair, times) for pair, times in pairs.items() if pair[0] != pair[1])
        messages = pandas.DataFrame(rows, columns=["sender", "receiver", "messages"])
    else:
        messages = pandas.read_csv(content)
    content, name = _content(_ACTORS)
    if name.endswith(".json"):
        people = pandas.DataFrame(json.load(content)).drop(columns="name")
    else:
        people = pandas.read_csv(content, keep_default_na=False)
    return Enron(messages, people.set_index("id"))


@_fetched
def fetch_kosarak() -> DataFrame:
    """Return click sessions of at most five pages on a Hungarian news portal [1]_, [2]_.

    Returns
    -------
    DataFrame
        A row for each click, 1240384 in 505217 sessions on 2605 pages that were seen at least 25 times: columns
        `session`, from 0, and `page`, the number that the source gives it. No session has a page twice.

    {published}

    Notes
    -----
    Reads `kosarak-5-25.txt`, 3.6 MB, or `kosarak_5_25.txt.gz` of the same content; half a second, 20 MB.

    References
    ----------
    .. [1] F. Bodon (2003), A fast APRIORI implementation, workshop on frequent itemset mining implementations.
    .. [2] A. R. Benson, R. Kumar and A. Tomkins (2018), A discrete choice model for subset selection, WSDM 2018: the
       selection of sessions and pages.

    Examples
    --------
    >>> from quincunx.datasets import fetch_kosarak
    >>> clicks = fetch_kosarak()  # doctest: +SKIP
    >>> clicks.page.value_counts().head(2).to_dict()  # doctest: +SKIP
    {6: 254682, 3: 227315}
    """
    pandas = require("pandas", "datasets")
    import numpy as np

    content, _ = _content(_KOSARAK)
    lines = content.getvalue().splitlines()
    lengths = [len(line.split()) for line in lines]
    pages = np.array(content.getvalue().split(), dtype=np.int64)
    return pandas.DataFrame({"session": np.repeat(np.arange(len(lines)), lengths), "page": pages})


@_fetched
def fetch_adult(subset: Literal["train", "test", "all"] = "train") -> DataFrame:
    """Return the extract of the census of 1994 that is known as Adult or Census Income [1]_.

    Parameters
    ----------
    subset : {"train", "test", "all"}
        32561 people, the other 16281, or first the former and then the latter.

    Returns
    -------
    DataFrame
        Columns `age`, `workclass`, `weight`, `education`, `years` (of education), `marital`, `occupation`,
        `relationship`, `race`, `sex`, `gain` and `loss` (of capital), `hours` (a week), `country` and `income`,
        which is ``"<=50K"`` or ``">50K"``: 7841 and 3846 people have more. What is unknown is ``"?"``.

    {published}
        So too if `subset` is another word.

    Notes
    -----
    Reads `adult-train.csv` and `adult-test.csv`, 4 and 2 MB, or `adult_train.csv.gz` and `adult_test.csv.gz` of the
    same content; 0.1 s. The full stop behind the incomes of the test file is left out.

    References
    ----------
    .. [1] R. Kohavi (1996), Scaling up the accuracy of naive-Bayes classifiers: a decision-tree hybrid, KDD 1996.

    Examples
    --------
    >>> from quincunx.datasets import fetch_adult
    >>> people = fetch_adult()  # doctest: +SKIP
    >>> people.shape, int((people.income == ">50K").sum())  # doctest: +SKIP
    ((32561, 15), 7841)
    """
    word = _check.one_of(subset, "subset", ("train", "test", "all"))
    pandas = require("pandas", "datasets")
    how = {"names": _ADULT_COLUMNS, "skipinitialspace": True, "keep_default_na": False}
    parts = [pandas.read_csv(_content(_ADULT[part])[0], **how) for part in _ADULT if word in (part, "all")]
    people = pandas.concat(parts, ignore_index=True)
    return people.assign(income=people.income.str.rstrip("."))


@_fetched
def fetch_wine(color: Literal["red", "white", "all"] = "all") -> DataFrame:
    """Return laboratory values and qualities of Portuguese wines [1]_.

    Parameters
    ----------
    color : {"red", "white", "all"}
        1599 red wines, 4898 white ones, or first the former and then the latter.

    Returns
    -------
    DataFrame
        Columns `fixed_acidity`, `volatile_acidity`, `citric_acid`, `residual_sugar`, `chlorides`,
        `free_sulfur_dioxide`, `total_sulfur_dioxide`, `density`, `pH`, `sulphates`, `alcohol` (in per cent) and
        `quality`, a whole number from 3 to 9.

    {published}
        So too if `color` is another word.

    Notes
    -----
    Reads `winequality-red.csv` and `winequality-white.csv`, 0.1 and 0.3 MB, or copies with a line of names,
    `winequality_red.csv.gz` and `winequality_white.csv.gz`.

    References
    ----------
    .. [1] P. Cortez, A. Cerdeira, F. Almeida, T. Matos and J. Reis (2009), Modeling wine preferences by data mining
       from physicochemical properties, Decision Support Systems 47.

    Examples
    --------
    >>> from quincunx.datasets import fetch_wine
    >>> wines = fetch_wine("red")  # doctest: +SKIP
    >>> wines.shape, float(wines.alcohol.max())  # doctest: +SKIP
    ((1599, 12), 14.9)
    """
    word = _check.one_of(color, "color", ("red", "white", "all"))
    pandas = require("pandas", "datasets")
    parts = []
    for part in _WINE:
        if word in (part, "all"):
            content, name = _content(_WINE[part])
            parts.append(pandas.read_csv(content, names=_WINE_COLUMNS, skiprows=int(name.endswith(".gz"))))
    return pandas.concat(parts, ignore_index=True)

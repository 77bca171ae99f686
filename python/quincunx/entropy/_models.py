"""What lives on a lattice: one entry of a table for each model that has a name, and face models of a user's own."""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx.entropy._numbers import positive_rational
from quincunx.entropy._parts import entropy_doc

Table: TypeAlias = "npt.NDArray[np.object_]"
Weight: TypeAlias = "tuple[int, int, float]"

#: Weights that differ by more would leave the range in which roundings of doubles are relative ones.
_RANGE = Fraction(1, 10**9)

#: Letters beyond which the shortest torus has too many words.
MOST_LETTERS = 6


@entropy_doc
class FaceModel:
    r"""A model with letters on the vertices of the square lattice and weights of faces, bonds and vertices.

    A configuration weighs the product of ``faces[a, b, c, d]`` over all faces (a, b above from left to right, c, d
    below), of ``bonds[a, b]`` over all pairs of neighbors and of ``vertices[a]`` over all vertices.

    Parameters
    ----------
    faces : array_like of int or Fraction, shape (q, q, q, q), optional
        The weights of faces, >= 0; 1 by default.
    bonds : array_like of int or Fraction, shape (q, q) or (2, q, q), optional
        The weights of neighbors, >= 0: left and right, above and below; or one table for each. 1 by default.
    vertices : array_like of int or Fraction, shape (q,), optional
        The weights of letters, > 0; 1 by default. Floats are the rational numbers they are, here as above.

    Attributes
    ----------
    letters : int
        The number q of letters.
    mirrors : tuple of bool
        Whether all weights stay what they are if left and right are exchanged, and if above and below are: exactly.
    name : str
        What it is called in a result.

    Raises
    ------
    TypeError
        If a weight is not a number.
    ValueError
        If weights do not fit together, are negative, forbid everything, or are neither 0 nor within nine orders of
        magnitude of the largest, or there are more than six letters.

    Notes
    -----
    Weights of bonds and vertices may be put into those of faces where roots are rational; given by themselves they
    are exact.

    References
    ----------
    .. [1] R. J. Baxter (1982), Exactly Solved Models in Statistical Mechanics, chapter 13 (interactions round a face).

    Examples
    --------
    Hard squares with an activity of 1/2:

    >>> from fractions import Fraction
    >>> from quincunx.entropy import FaceModel, entropy_bounds
    >>> model = FaceModel(bonds=[[1, 1], [1, 0]], vertices=[1, Fraction(1, 2)])
    >>> round(float(entropy_bounds("square", model=model, digits=12).growth_constant.lower), 11)
    1.30953852882
    """

    __slots__ = ("bonds", "faces", "letters", "name", "vertices")

    def __init__(
        self, faces: object = None, *, bonds: object = None, vertices: object = None, name: str = "face weights"
    ) -> None:
        given = [("faces", faces), ("bonds", bonds), ("vertices", vertices)]
        tables = {key: _table(value, key) for key, value in given if value is not None}
        if not tables:
            raise ValueError("`faces`, `bonds` or `vertices` must be given")
        q = next(iter(tables.values())).shape[-1]
        for key, shapes in {"faces": [(q,) * 4], "bonds": [(q, q), (2, q, q)], "vertices": [(q,)]}.items():
            table = tables.setdefault(key, np.full(shapes[0], Fraction(1), dtype=object))
            if table.shape not in shapes:
                words = " or ".join(map(str, shapes))
                raise ValueError(f"`{key}` must have shape {words}, got {table.shape}")
        if not 1 <= q <= MOST_LETTERS:
            raise ValueError(f"`faces`, `bonds` and `vertices` must have 1 to {MOST_LETTERS} letters, got {q}")
        if not all(weight > Fraction(0) for weight in tables["vertices"].tolist()):
            raise ValueError("`vertices` must be positive: leave out letters that never occur")
        if tables["bonds"].ndim == 2:
            tables["bonds"] = np.stack([tables["bonds"]] * 2)
        self.letters: int = q
        self.name = name
        self.faces: Table = tables["faces"]
        self.bonds: Table = tables["bonds"]
        self.vertices: Table = tables["vertices"]
        alive = self._alive()
        if not alive:
            raise ValueError("`faces` and `bonds` must allow some face, and all are zero")
        if len(alive) < q:
            self.letters = len(alive)
            self.faces, self.vertices = self.faces[np.ix_(*[alive] * 4)], self.vertices[alive]
            self.bonds = self.bonds[np.ix_(range(2), alive, alive)]
        for table in self._parts():
            largest: Fraction = table.max()
            if any(0 < weight < largest * _RANGE for weight in table.ravel().tolist()):
                raise ValueError(f"weights must be 0 or more than a billionth of the largest, {largest}, got {self!r}")

    def _parts(self) -> tuple[Table, Table]:
        """Return the weights of neighbors in a row, vertices included, and those of faces, the other bonds included.

        Each bond and vertex belongs to the pair on its right and to the face below.
        """
        rows, columns = self.bonds
        return rows * self.vertices[:, None], self.faces * columns[:, None, :, None]

    def _alive(self) -> list[int]:
        """Return the letters that occur at each corner of some face of such letters."""
        alive = list(range(self.letters))
        while True:
            faces = [
                face for face in itertools.product(alive, repeat=4) if self.faces[face] and all(self._bonds_of(*face))
            ]
            left = [a for a in alive if all(any(face[corner] == a for face in faces) for corner in range(4))]
            if left == alive:
                return alive
            alive = left

    def _bonds_of(self, a: int, b: int, c: int, d: int) -> list[Fraction]:
        rows, columns = self.bonds
        return [rows[a, b], rows[c, d], columns[a, c], columns[b, d]]

    @property
    def mirrors(self) -> tuple[bool, bool]:
        """Whether left and right, and above and below, may be exchanged."""
        rows, columns = self.bonds
        sides = (self.faces == self.faces.transpose(1, 0, 3, 2)).all() and (rows == rows.T).all()
        heights = (self.faces == self.faces.transpose(2, 3, 0, 1)).all() and (columns == columns.T).all()
        return bool(sides), bool(heights)

    def transposed(self) -> "FaceModel":
        """Return the model with rows and columns exchanged.

        Returns
        -------
        FaceModel
            The same configurations, drawn along the other axis.

        Examples
        --------
        >>> from quincunx.entropy import FaceModel
        >>> FaceModel(bonds=[[[1, 1], [0, 1]], [[1, 1], [1, 0]]]).transposed().mirrors
        (True, False)
        """
        faces = self.faces.transpose(0, 2, 1, 3)
        return FaceModel(faces, bonds=self.bonds[::-1], vertices=self.vertices, name=self.name)

    @classmethod
    def potts(cls, states: int, weight: "int | float | Fraction") -> "FaceModel":
        """Return the Potts model: a pair of neighbors weighs `weight` if it is alike, and 1 otherwise.

        Parameters
        ----------
        states : int
            The number of states, 2 (the Ising model) to 6.
        weight : int, float or Fraction
            ``exp(J / T)``, > 0; for the Ising model with couplings J of spins +-1, ``exp(2 J / T)``.

        {face_model}

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If an argument is out of its range.

        Examples
        --------
        >>> from quincunx.entropy import FaceModel, entropy_bounds
        >>> from fractions import Fraction
        >>> model = FaceModel.potts(3, Fraction(3, 2))
        >>> round(float(entropy_bounds("square", model=model, digits=6).growth_constant.lower), 5)
        4.0869
        """
        states = _check.whole(states, "states", minimum=2, maximum=MOST_LETTERS)
        alike = positive_rational(weight, "weight")
        bonds = [[alike if a == b else Fraction(1) for b in range(states)] for a in range(states)]
        return cls(bonds=bonds, name=f"{states}-state Potts, weight {alike}")

    @classmethod
    def colorings(cls, colors: int) -> "FaceModel":
        """Return the proper colorings: letters of which no two neighbors are alike.

        Parameters
        ----------
        colors : int
            The number of colors, 2 to 6. Three are critical: corner tensors prove no gap, and rings bound it.

        {face_model}

        Raises
        ------
        TypeError
            If `colors` is not an integer.
        ValueError
            If it is out of its range.

        Examples
        --------
        >>> from quincunx.entropy import FaceModel, entropy_bounds
        >>> (4 / 3) ** 1.5 in entropy_bounds("square", model=FaceModel.colorings(3)).growth_constant  # Lieb
        True
        """
        colors = _check.whole(colors, "colors", minimum=2, maximum=MOST_LETTERS)
        return cls(bonds=1 - np.eye(colors, dtype=int), name=f"{colors}-colorings")

    @classmethod
    def widom_rowlinson(cls, activity: "int | float | Fraction" = 1) -> "FaceModel":
        """Return Widom and Rowlinson's model: particles of two kinds, those of different kinds never neighbors.

        Parameters
        ----------
        activity : int, float or Fraction, default 1
            The weight of a particle of either kind, > 0.

        {face_model}

        {activity_errors}

        References
        ----------
        .. [1] B. Widom and J. S. Rowlinson (1970), New model for the study of liquid-vapor phase transitions, J. Chem.
           Phys. 52.

        Examples
        --------
        >>> from quincunx.entropy import FaceModel, entropy_bounds
        >>> model = FaceModel.widom_rowlinson()
        >>> round(float(entropy_bounds("square", model=model, digits=8).growth_constant.lower), 8)
        2.15350668
        """
        z = positive_rational(activity, "activity")
        return cls(bonds=[[1, 1, 1], [1, 1, 0], [1, 0, 1]], vertices=[1, z, z], name="widom-rowlinson")

    def __repr__(self) -> str:
        return f"<FaceModel {self.name!r} of {self.letters} letters>"


#: The models by name, each with its face model at an activity; None where the lattice's row in the registry has its
#: operator. The activity weighs an occupied vertex, a dimer, a particle of either kind, a pair of neighbors alike.
MODELS: dict[str, Callable[[Fraction], FaceModel] | None] = {
    "independent-sets": None,
    "matchings": None,
    "widom-rowlinson": FaceModel.widom_rowlinson,
    "ising": lambda weight: FaceModel.potts(2, weight),
}


def model_of(model: "str | FaceModel", activity: Fraction) -> tuple[str, FaceModel | None]:
    """Return the name of a model, and its weights if it is a face model."""
    if isinstance(model, FaceModel):
        if activity != 1:
            raise ValueError(f"`activity` must be left out for a FaceModel, whose weights hold it, got {activity}")
        return model.name, model
    if not isinstance(model, str):
        raise TypeError(f"`model` must be a str or a quincunx.entropy.FaceModel, got {type(model).__name__}")
    name = _check.one_of(model, "model", list(MODELS))
    faces = MODELS[name]
    return name, None if faces is None else faces(activity)


class Equivalent(NamedTuple):
    """A model whose constant is that of another divided by a factor."""

    model: FaceModel
    factor: Fraction
    #: Why that is so, for the evidence.
    because: str | None = None


def easier(model: FaceModel) -> Equivalent:
    """Return a model with the same constant up to a factor, on the other side of a transition where there is a duality.

    Of Potts' model with q states and weights 1 + v and 1, ``kappa(v) = v**2 / q kappa(q / v)``, by the polynomial of
    Fortuin and Kasteleyn of a plane graph and its dual. Of Ising's, ``kappa(x) = x**2 kappa(1 / x)``: every second spin
    is turned over.
    """
    q, bonds, vertices = model.letters, model.bonds[0], model.vertices
    alike, unlike = bonds[0, 0], bonds[0, -1]
    expected = np.where(np.eye(q, dtype=bool), alike, unlike)
    plain = (model.faces == model.faces.flat[0]).all() and (vertices == vertices[0]).all()
    if q == 1 or not (plain and alike and unlike and (model.bonds == expected).all()):
        return Equivalent(model, Fraction(1))
    factor, x = model.faces.flat[0] * vertices[0] * unlike**2, alike / unlike
    because = []
    if q == 2 and x < 1:
        factor, x = factor * x**2, 1 / x
        because.append("every second spin turned over")
    if (x - 1) ** 2 > q and x > 1:
        factor, x = factor * (x - 1) ** 2 / q, 1 + q / (x - 1)
        because.append("duality")
    if not because:
        return Equivalent(model, Fraction(1))
    return Equivalent(FaceModel.potts(q, x), factor, " and ".join(because))


def normalized(model: FaceModel) -> tuple["tuple[int, list[Weight], list[Weight]]", Fraction]:
    """Return the weights as the core takes them, the largest of rows and of faces 1, and the factor taken out."""
    lines, faces = model._parts()
    most = lines.max(), faces.max()
    lines, faces = lines / most[0], faces / most[1]
    denominator = math.lcm(*(weight.denominator for weight in faces.flat))
    parts = [(int(weight * denominator), denominator, float(weight)) for weight in faces.flat]
    return (model.letters, [(*w.as_integer_ratio(), float(w)) for w in lines.flat], parts), most[0] * most[1]


def _table(values: object, key: str) -> Table:
    """Return weights as an array of fractions."""
    _check.fits(values, key)
    _check.refuse_masked(values, key)
    shape: list[int] = []
    part = values
    while isinstance(part, (Sequence, np.ndarray)) and not isinstance(part, (str, bytes)) and np.ndim(part):
        shape.append(len(part))
        part = part[0] if len(part) else 0
    flat = np.array(values, dtype=object)
    if not shape or flat.shape != tuple(shape) or 0 in shape:
        raise ValueError(f"`{key}` must be an array of weights, got {values!r:.60}")
    table = np.empty(flat.size, dtype=object)
    for i, value in enumerate(flat.flat):
        table[i] = Fraction(0) if _is_zero(value) else positive_rational(value, key)
    return table.reshape(shape)


def _is_zero(value: object) -> bool:
    return not isinstance(value, (str, bytes)) and bool(value == 0)

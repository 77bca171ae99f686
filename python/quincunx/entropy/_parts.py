"""Parts that docstrings of this room share."""

from quincunx._docs import assembled

entropy_doc = assembled(
    face_model="""
    Returns
    -------
    FaceModel
        The model.
    """,
    activity_errors="""
    Raises
    ------
    TypeError
        If `activity` is not a number.
    ValueError
        If it is not positive.
    """,
)

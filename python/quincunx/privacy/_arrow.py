"""Files of Arrow's formats, which a few bytes can make as long as they like: what they hold, before it is read.

The sizes that parquet states are those of its codes, and a dictionary or a run says one value many times; so values are
counted, and where their sizes are not known from there, those of strings by batches that memory has room for.
"""

import struct
from typing import TYPE_CHECKING

import numpy as np

from quincunx import _check
from quincunx._optional import require
from quincunx._types import DataFrame

if TYPE_CHECKING:
    import pyarrow

#: Bytes that a value takes, at the least, until it is a number: itself, and its text, its words and lines of them.
_OF_VALUE = 20
_OF_TEXT = 6
#: Encodings of strings in which each byte of a value has a byte of its own.
_PLAIN = {"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
_WHAT = "what it unpacks to"


def read_arrow(name: str, ending: str) -> DataFrame:
    """Return the data frame of a file of parquet or feather, if memory has room for it and its text."""
    pandas = require("pandas", "pandas")
    require("pyarrow", "parquet")
    if ending == ".parquet":
        _refuse_parquet(name)
        frame = pandas.read_parquet(name)
    else:
        _refuse_feather(name)
        frame = pandas.read_feather(name)
    text = 0
    for _, column in frame.items():
        if isinstance(column.dtype, pandas.CategoricalDtype):  # a label is held once, however often it is said
            lengths = np.array([len(str(label)) for label in column.cat.categories] + [0])
            text += int(lengths[column.cat.codes].sum())
    _check.room(_OF_TEXT * text, f"{name}: {_WHAT}")
    return frame


def _refuse_parquet(name: str) -> None:
    from pyarrow.parquet import ParquetFile

    limit, what = _check.available_memory(), f"{name}: {_WHAT}"
    with ParquetFile(name) as file:
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
        _check.room(_OF_VALUE * max(file.metadata.num_rows, sum(chunk.num_values for chunk in chunks)), what, limit)
        strings = [chunk for chunk in chunks if chunk.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")]
        sure = sum(
            chunk.total_uncompressed_size * (1 if _PLAIN.issuperset(chunk.encodings) else chunk.num_values)
            for chunk in strings
        )
        if _OF_TEXT * sure <= limit:
            return
        # No value is longer than its chunk.
        longest = max(chunk.total_uncompressed_size for chunk in strings)
        rows, size = max(1, min(1 << 16, limit // (_OF_TEXT * longest))), 0
        for batch in file.iter_batches(rows, columns=sorted({chunk.path_in_schema for chunk in strings})):
            size += batch.nbytes
            _check.room(_OF_TEXT * size, what, limit)


def _refuse_feather(name: str) -> None:
    """Refuse by what the messages of a file state, none of which is unpacked; the first format packs nothing."""
    import pyarrow

    with open(name, "rb") as file:
        if file.read(8)[:6] != b"ARROW1":
            return
        schema, size, rows = None, 0, 0
        for message in pyarrow.ipc.MessageReader.open_stream(file):
            if message.type == "schema":
                schema = pyarrow.ipc.read_schema(message)
                continue
            batch_rows, buffers = _stated(bytes(message.metadata), message.body)
            views = schema is not None and any("view" in str(kind) for kind in schema.types)
            rows += 0 if message.type == "dictionary" else batch_rows
            # Many views can be of one buffer.
            size += sum(buffers) + (batch_rows * max(buffers, default=0) if views else 0)
            values = rows * (1 if schema is None else max(1, len(schema.types)))
            _check.room(max(size, _OF_VALUE * values), f"{name}: {_WHAT}")


def _stated(metadata: bytes, body: "pyarrow.Buffer") -> tuple[int, list[int]]:
    """Return the rows of a batch and the bytes of its buffers once unpacked, from its message as FlatBuffers has it."""

    def number(kind: str, at: int) -> int:
        found: int = struct.unpack_from(f"<{kind}", metadata, at)[0]
        return found

    def entry(table: int, slot: int) -> int:
        """Return where an entry of a table stands, 0 for none."""
        names = table - number("i", table)
        offset = number("H", names + 4 + 2 * slot) if 4 + 2 * slot < number("H", names) else 0
        return table + offset if offset else 0

    def followed(at: int) -> int:
        return at + number("I", at)

    message = followed(0)
    batch = followed(entry(message, 2))
    if number("B", entry(message, 1)) == 2:  # of a dictionary
        batch = followed(entry(batch, 1))
    length = entry(batch, 0)
    vector = followed(entry(batch, 2))
    sizes = []
    for i in range(number("I", vector)):
        start, packed = struct.unpack_from("<qq", metadata, vector + 4 + 16 * i)
        if packed and entry(batch, 3):  # a compressed buffer begins with its size, -1 where it is left as it was
            whole = int.from_bytes(body[start : start + 8].to_pybytes(), "little", signed=True)
            packed = packed - 8 if whole == -1 else whole
        sizes.append(packed)
    return number("q", length) if length else 0, sizes

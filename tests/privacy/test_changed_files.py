"""A file of a release that was changed is refused, or is the same release; one of format 1 is read."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from quincunx.privacy import LaplaceMechanism, Release, privatize


def releases():
    table = pd.DataFrame({"tea": [3, 1], "coffee": [0, 7]}, index=["Ann", "Bob"])
    yield "counts", privatize(table, epsilon=1.0, insecure_seed=1)
    yield "masked", privatize(np.ma.array([[3, 4], [5, 6]], mask=[[0, 1], [0, 0]]), epsilon=1.0, insecure_seed=1)
    yield "numbers", LaplaceMechanism(1.0, 0, 1).release([0.25, 0.5], insecure_seed=1)


RELEASES = [pytest.param(release, id=name) for name, release in releases()]


def written(release, format):
    release.save(file := io.BytesIO(), format=format)
    return file.getvalue()


@pytest.mark.parametrize("format", ["json", "csv"])
@pytest.mark.parametrize("release", RELEASES)
def test_no_flipped_bit_of_a_text_makes_another_release(release, format):
    content, refused = written(release, format), 0
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            try:
                assert Release.load(io.BytesIO(flipped)) == release
            except ValueError:
                refused += 1
    assert refused > 7.5 * len(content)


@pytest.mark.parametrize("release", RELEASES)
def test_no_flipped_byte_of_an_archive_makes_another_release(release):
    content = written(release, "npz")
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        try:
            assert Release.load(io.BytesIO(flipped)) == release
        except ValueError:
            pass


def change(header, name):
    if name == "a value":
        header["values"][0][0] += 1
    elif name == "a label":
        header["axes"][0]["labels"][0] = "Eve"
    elif name == "the guarantee":
        header["guarantee"]["epsilon"] = "1/2"
    elif name == "the noise":
        header["parameters"]["upper"] = 9
    elif name == "the checksum":
        header["checksum"] = header["checksum"][::-1]
    elif name == "no checksum":
        del header["checksum"]
    elif name == "an older format":
        header["format"] = 1


@pytest.mark.parametrize(
    "name", ["a value", "a label", "the guarantee", "the noise", "the checksum", "no checksum", "an older format"]
)
def test_a_file_that_was_edited_is_refused(name, tmp_path):
    header = json.loads(written(next(releases())[1], "json"))
    change(header, name)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(header))
    with pytest.raises(ValueError, match=r"edited\.json: its content is not that of its checksum: it was changed"):
        Release.load(path)


def test_an_order_of_keys_is_no_change():
    release = next(releases())[1]
    header = json.loads(written(release, "json"))
    assert Release.load(io.BytesIO(json.dumps(dict(reversed(header.items())), indent=1).encode())) == release


OLD = {
    "mechanism": "geometric",
    "parameters": {"alpha": 0.36787944117144233, "lower": None, "upper": None, "exponent": "1", "n": 1},
    "guarantee": {
        "epsilon": "1",
        "delta": "0",
        "relation": ["DataMetric", "l1", 1],
        "numerics": "insecure",
        "parts": [
            {
                "reach": {
                    "kind": "shift",
                    "unit": {"kind": "geometric", "decay": "1", "shift": 1},
                    "metric": "l1",
                    "whole": True,
                    "rest": "0",
                },
                "epsilon": "1",
                "delta": "0",
                "times": 1,
            }
        ],
    },
}


@pytest.mark.parametrize("format", ["json", "csv", "npz"])
def test_a_file_of_format_1_is_read_though_it_has_no_checksum(format):
    release = privatize([[3, 1], [4, 1]], epsilon=1.0, insecure_seed=1)
    facts = {"format": 1} | OLD
    shape = {"dtype": "int64", "shape": [2, 2]}
    file = io.BytesIO()
    if format == "json":
        file.write(json.dumps(facts | shape | {"values": [[2, 2], [1, 1]]}).encode())
    elif format == "csv":
        file.write(f"# quincunx release {json.dumps(facts | shape)}\n2,2\n1,1\n".encode())
    else:
        np.savez(file, values=release.values, release=np.array(json.dumps(facts)))
    file.seek(0)
    assert Release.load(file) == release


def test_a_later_format_is_refused_by_its_number():
    header = json.loads(written(next(releases())[1], "json")) | {"format": 3}
    with pytest.raises(ValueError, match="its format is 3, this version reads 1 and 2"):
        Release.load(io.BytesIO(json.dumps(header).encode()))

"""Data for tutorials and experiments: public files with known checksums, and small samples drawn from documented laws.

Files are looked for in the folder that the environment variable QUINCUNX_DATA names, and fetched into it, or into a
cache folder, where they are not there; their SHA-256 is compared each time, whatever their source. Tables are pandas'.
"""

from quincunx.datasets._files import Enron, fetch_adult, fetch_enron, fetch_kosarak, fetch_wine, folder
from quincunx.datasets._made import MadeCounts, MadeNetwork, Survey, make_counts, make_network, make_survey

__all__ = [
    "Enron",
    "MadeCounts",
    "MadeNetwork",
    "Survey",
    "fetch_adult",
    "fetch_enron",
    "fetch_kosarak",
    "fetch_wine",
    "folder",
    "make_counts",
    "make_network",
    "make_survey",
]

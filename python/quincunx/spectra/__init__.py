"""Spectra: eigenvalues by Bloch blocks, graph energy, Kirchhoff index, connectivity and expansion.

Eigenvalues are floats; what is exact is asked for by ``exact=True`` and is a Fraction. The adjacency matrix counts
parallel edges one by one, and a loop adds 2 to its diagonal and to the degree, so that it leaves the Laplacian alone.
"""

from quincunx.spectra._bloch import bloch_hamiltonian, spectrum
from quincunx.spectra._connectivity import algebraic_connectivity, clique_spectrum, expander_map
from quincunx.spectra._energy import EnergyDensity, density_of_states, energy, energy_density
from quincunx.spectra._resistance import average_resistance, kirchhoff_index, resistance_distance

__all__ = [
    "EnergyDensity",
    "algebraic_connectivity",
    "average_resistance",
    "bloch_hamiltonian",
    "clique_spectrum",
    "density_of_states",
    "energy",
    "energy_density",
    "expander_map",
    "kirchhoff_index",
    "resistance_distance",
    "spectrum",
]

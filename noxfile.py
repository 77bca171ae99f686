"""``nox -s NAME``: the parts of ``.ci/run`` by name, each with the arguments that follow ``--`` where it takes any."""

import nox

nox.options.default_venv_backend = "none"  # everything runs in .venv, which the README's second command makes
nox.options.sessions = ["all"]


@nox.session
def all(session: nox.Session) -> None:
    """Run everything that must pass before anything lands."""
    session.run(".ci/run", external=True)


@nox.session(name="format")
def formatting(session: nox.Session) -> None:
    """Check formatting and quick lints, as for a commit."""
    session.run(".ci/run", "format", external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting, clippy, types and stubs."""
    session.run(".ci/run", "format", "clippy", "types", "dependencies", external=True)


@nox.session
def core(session: nox.Session) -> None:
    """Test the core at every vector level."""
    session.run(".ci/run", "core", external=True)


@nox.session
def plots(session: nox.Session) -> None:
    """Test what ArviZ makes of a fit: plots, summaries, leave-one-out."""
    session.run(".ci/run", "plots", external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """Test the Python face, or one room: ``nox -s tests -- tests/counting``."""
    if session.posargs:
        session.run(".venv/bin/python", "-m", "pytest", "--quiet", *session.posargs, external=True)
    else:
        session.run(".ci/run", "tests", external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Build every page, the reference and the gallery, without a warning."""
    session.run(".ci/run", "docs", external=True)

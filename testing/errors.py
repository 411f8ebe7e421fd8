"""What the tools for tests raise."""

from __future__ import annotations

from ldfi.errors import LdfiError


class NotFired(LdfiError, AssertionError):  # noqa: N818 - reads as what it is
    """Raised at the end of a block in which a fault was to fire and did not.

    A test under such faults would pass because nothing was injected. Data: ``missing``, the faults
    that never fired, and ``passed``, the points that were reached, both in writing.
    """

    def __init__(self, missing: list[str], passed: list[str]) -> None:
        self.missing, self.passed = missing, passed
        super().__init__(_explained(missing, passed))


def needs_service(module: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return what to install for a module of ours that misses something."""
    text = f"{module} runs the whole service ({error}): pip install 'ldfi[service]'"
    return ModuleNotFoundError(text, name=error.name)


def _explained(missing: list[str], passed: list[str]) -> str:
    said = f"never fired: {', '.join(missing)}."
    if passed:
        return f"{said} The points that were reached are {', '.join(sorted(set(passed)))}."
    return (
        f"{said} No injection point was reached in this block's context: was the call answered "
        "from a cache, made in a thread that the context does not reach, or by a library without "
        "injection points?"
    )

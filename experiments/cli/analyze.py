"""``ldfi analyze``"""


def analyze() -> None:
    """TODO"""

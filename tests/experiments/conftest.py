"""What makes each run of these tests alike."""

from tests.kit.steady import draws, patience, time_to_solve  # noqa: F401

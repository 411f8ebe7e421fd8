"""The middle of the service: pure, driven by a clock that is passed in, ignorant of the rim."""

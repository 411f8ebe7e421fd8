"""Services in processes of their own, while a test is explored: their spans come in over the
network, their keys and the way to us go out by environment.

``receiver`` takes OTLP in, ``collector`` waits until the trace of a run is whole, ``requests``
tells the test's own requests from what they caused, ``stamp`` signs what the test sends,
``environment`` is what services have to be told, ``services`` starts them, ``proxy`` stands before
them for tests in other languages.
"""

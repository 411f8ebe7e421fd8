"""A conformance test: whether an implementation does as the specification says.

It talks to a *host*: a small program around the implementation that speaks the control protocol of
``docs/conformance.md`` over HTTP. The same checks are asked of every language: of readers, and of
edges where a host has any::

    python -m ldfi.testing.conformance --url http://127.0.0.1:8123
"""

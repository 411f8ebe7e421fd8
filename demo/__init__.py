"""demo: applications in real processes, for ldfi to find the weak spots of.

    python -m ldfi.demo               a streaming service and its devices, until told to stop
    python -m ldfi.demo --world shop  a small shop instead
    python -m ldfi.demo.serve NAME    one service
    python -m ldfi.demo.devices       the devices alone, against a running gateway

It is a system under test: of ldfi it knows :mod:`fit` and nothing else.
"""

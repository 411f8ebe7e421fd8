"""Fault-tolerance protocols as small message-passing simulations, with their counterexamples.

The protocols are those that Molly was evaluated on (Alvaro, Rosen, Hellerstein, "Lineage-driven
Fault Injection", SIGMOD 2015), written anew from their descriptions.
"""

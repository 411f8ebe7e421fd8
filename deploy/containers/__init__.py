"""Run the containers: ``python -m deploy.containers``, ``make containers``.

There is no registry here. ``standins`` makes every image that the Dockerfile and compose.yaml
name out of what the machine has, ``engine`` keeps them in a store of their own, ``composed``
brings compose.yaml up, and ``trial`` runs a campaign in it while containers are killed.
"""

"""The topology of compose.yaml as plain processes: ``python -m deploy.stack``, ``make stack``.

One module for each server that is not ours, which the tests start, too; ``topology`` puts them
together with the service in its roles, and ``__main__`` runs the demo's campaign on all of it.
"""

"""The service: campaigns of experiments on live traffic, and the faces it shows.

The middle (``domain/``) is pure and driven by a clock that is passed in; ``store/``, ``api/`` and
``cli/`` are the rim, and the middle never imports them. ``engine.py`` ties the two together.
"""

"""The pytest plugin: a functional test, run again under every combination of failures worth trying.

    @pytest.mark.ldfi(max_size=2)
    def test_the_product_page_shows_a_price(client): ...

``plugin`` holds pytest's hooks and is all that is imported where no test is marked. ``loop`` is
the pure part: what to try next, and what was learned. ``protocol`` runs one test once,
``recorder`` and ``calls`` see what the application called and make it fail.
"""

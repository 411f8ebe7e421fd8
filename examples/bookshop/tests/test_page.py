"""What the bookshop owes its readers: a book with a price, and when it comes."""

from __future__ import annotations

import httpx
import pytest


@pytest.mark.ldfi(max_size=3, time_limit=300)
def test_a_book_can_be_bought_from_its_page(shop: str) -> None:
    answer = httpx.get(f"{shop}/books/17", timeout=30, trust_env=False)
    assert answer.status_code == 200
    page = answer.json()
    assert page["book"]["title"]
    assert page["price"]
    assert page["delivery"]

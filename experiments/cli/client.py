"""The service, as the command line sees it."""

from __future__ import annotations

from typing import Any

import httpx

from experiments.errors import ExperimentsError, Unreachable


class Client:
    """Calls the API at ``url`` with a bearer token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=15.0
        )

    def get(self, path: str) -> Any:
        """GET ``path`` below ``/api/v1``. Raises Unreachable or ExperimentsError."""
        return self._answer("GET", path)

    def post(self, path: str, document: dict[str, Any] | None = None) -> Any:
        """POST a document to ``path`` below ``/api/v1``. Raises like :meth:`get`."""
        return self._answer("POST", path, json=document)

    def delete(self, path: str) -> Any:
        """DELETE ``path`` below ``/api/v1``. Raises like :meth:`get`."""
        return self._answer("DELETE", path)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _answer(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            response = self._http.request(method, f"/api/v1{path}", **arguments)
        except httpx.HTTPError as error:
            raise Unreachable(f"no answer from {self.url}: {error}; is `ldfi serve` up?") from error
        if response.is_error:
            raise ExperimentsError(_problem(response))
        return response.json()


def _problem(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"{response.request.url} answered {response.status_code}"

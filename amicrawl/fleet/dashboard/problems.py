"""Problems: how the dashboard refuses a request, as `application/problem+json` (RFC 9457). Pure."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEDIA_TYPE = "application/problem+json"
_TITLES = {413: "Content Too Large", 421: "Misdirected Request", 422: "Unprocessable Content"}


class Problem(Exception):  # noqa: N818  # the standard's word
    """A request that is refused with *status* and a sentence."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self._errors = list(errors)
        self._facts = facts

    @property
    def title(self) -> str:
        """The name of the status."""
        return title_of(self.status)

    def content(self) -> dict[str, Any]:
        """Return its fields."""
        content: dict[str, Any] = {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self._facts,
        }
        if self._errors:
            content["errors"] = self._errors
        return content

    def response(self) -> Response:
        """Return the response."""
        # Not a JSONResponse: a sentence may name a file, whose name need not be UTF-8.
        content = json.dumps(self.content()).encode("ascii")
        return Response(content, status_code=self.status, headers=self.headers, media_type=MEDIA_TYPE)


def title_of(status: int) -> str:
    """Return the name of *status*, as in RFC 9110."""
    if status in _TITLES:
        return _TITLES[status]
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"

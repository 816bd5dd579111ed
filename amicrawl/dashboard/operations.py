"""Operations: one table that both serves the HTTP API and describes it.

An `Operation` says who may ask, what the body and the query are checked by, and what the answer is made
of. `endpoint` turns it into a route; `openapi` turns the same table into a document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from amicrawl.dashboard.bodies import Nothing
from amicrawl.dashboard.problems import Problem
from amicrawl.errors import AmicrawlError, InputError, UsageError
from amicrawl.jobs.connection import RedisRefused, RedisUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request

    from amicrawl.dashboard.app import Site
    from amicrawl.dashboard.users import Role
    from amicrawl.dashboard.visitors import Visitor

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Call:
    """One request for an operation, everything about it checked."""

    site: Site
    request: Request
    visitor: Visitor | None
    """None only where the operation asks for no role."""
    path: Mapping[str, str]
    query: Any
    body: Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that the API does."""

    method: str
    path: str
    """Behind the prefix, `{name}` for a part that varies."""
    run: Callable[[Call], Any]
    """Does it, on a thread; what it returns is the answer. Its docstring describes it."""
    answer: Any
    """The type of the answer."""
    role: Role | None
    """Who may; None for everybody."""
    body: type[BaseModel] | None = None
    query: type[BaseModel] = Nothing
    status: int = 200
    serve: Callable[[Call], Any] | None = None
    """Makes the whole response, on the event loop, in place of `run`: for a stream."""

    @property
    def name(self) -> str:
        """What it is called in the document."""
        return self.run.__name__

    @property
    def summary(self) -> str:
        """The first line of what it does."""
        return (self.run.__doc__ or "").strip().partition("\n")[0]


def routes(operations: Sequence[Operation], site: Site) -> list[Route]:
    """Return the routes of *operations*."""
    return [
        Route(PREFIX + operation.path, endpoint(operation, site), methods=[operation.method])
        for operation in operations
    ]


def endpoint(operation: Operation, site: Site) -> Callable[[Request], Any]:
    """Return what serves *operation*."""

    async def serve(request: Request) -> Response:
        try:
            body = await _body_of(request) if operation.body is not None else b""
            call = await run_in_threadpool(_call, operation, site, request, body)
            if operation.serve is not None:
                response: Response = operation.serve(call)
                return response
            result = await run_in_threadpool(operation.run, call)
        except Problem as problem:
            return problem.response()
        except AmicrawlError as error:
            return problem_of(error).response()
        return Response(
            orjson.dumps(result, option=orjson.OPT_NON_STR_KEYS),
            status_code=operation.status,
            media_type="application/json",
        )

    return serve


def problem_of(error: AmicrawlError) -> Problem:
    """Return *error* as the API reports it."""
    if isinstance(error, RedisUnavailable | RedisRefused):
        return Problem(503, str(error), headers={"retry-after": "5"})
    if isinstance(error, InputError):
        return Problem(404, str(error))
    if isinstance(error, UsageError):
        return Problem(422, str(error))
    return Problem(500, str(error))


async def _body_of(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind != "application/json":
        raise Problem(415, "Send a body of application/json.")
    return await request.body()


def _call(operation: Operation, site: Site, request: Request, body: bytes) -> Call:
    visitor = None
    if operation.role is not None:
        visitor = site.visitors.require(request, operation.role)
    else:
        site.visitors.check_origin(request, is_change=False)
    try:
        query = operation.query.model_validate(dict(request.query_params))
        said = None if operation.body is None else operation.body.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise _unprocessable(error) from error
    return Call(site, request, visitor, request.path_params, query, said)


def _unprocessable(error: ValidationError) -> Problem:
    errors = [
        {"where": ".".join(str(part) for part in one["loc"])[:200], "what": one["msg"][:500]}
        for one in error.errors(include_input=False, include_url=False, include_context=False)[:50]
    ]
    first = errors[0]
    where = f"{first['where']}: " if first["where"] else ""
    return Problem(422, f"{where}{first['what']}.", errors=errors)

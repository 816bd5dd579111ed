"""Operations: one table from which the HTTP API is served and its OpenAPI document is made.

An `Operation` names the role that it requires, the pydantic models of its body and query, and the type
of its response. `endpoint` makes a Starlette route of it, and `document` makes the OpenAPI document of
all of them, with the schemas that pydantic generates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from amicrawl import __version__
from amicrawl.errors import AmicrawlError, InputError, UsageError
from amicrawl.fleet.dashboard.bodies import Nothing
from amicrawl.fleet.dashboard.problems import MEDIA_TYPE, Problem, title_of
from amicrawl.fleet.dashboard.shapes import ProblemFacts
from amicrawl.fleet.database import RedisRefused, RedisUnavailable
from amicrawl.invalid import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request

    from amicrawl.fleet.dashboard.app import Site
    from amicrawl.fleet.dashboard.users import Role
    from amicrawl.fleet.dashboard.visitors import Visitor

PREFIX = "/api/v1"
VERSION = "3.1.0"
_PARTS = re.compile(r"\{(\w+)\}")
_REFERENCE = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class Call:
    """One request for an operation, everything about it checked."""

    site: Site
    request: Request
    visitor: Visitor | None
    """None only where the operation needs no role."""
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
    """Does it, on a thread; what it returns is the response. Its docstring describes it."""
    response: Any
    """The type of the response."""
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
        {"where": ".".join(str(part) for part in one["loc"])[:200], "what": reason_of(one)[:500]}
        for one in error.errors(include_input=False, include_url=False)[:50]
    ]
    first = errors[0]
    where = f"{first['where']}: " if first["where"] else ""
    return Problem(422, f"{where}{first['what']}.", errors=errors)


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document that describes *operations*."""
    kinds: dict[str, Any] = {"problem": ProblemFacts}
    for operation in operations:
        kinds[f"{operation.name} response"] = operation.response
        if operation.body is not None:
            kinds[f"{operation.name} body"] = operation.body
    found, definitions = TypeAdapter.json_schemas(
        [(key, "validation", TypeAdapter(kind)) for key, kind in kinds.items()],
        ref_template=_REFERENCE,
    )
    schemas = {key: schema for (key, _), schema in found.items()}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = paths.setdefault(PREFIX + operation.path, {})
        described[operation.method.lower()] = _described(operation, schemas)
    components = {
        name: {"additionalProperties": False, **schema}
        for name, schema in sorted(definitions["$defs"].items())
    }
    return {
        "openapi": VERSION,
        "info": {
            "title": "amicrawl dashboard",
            "version": __version__,
            "description": "Jobs: submitted, watched and steered. Times are Unix seconds, sizes bytes.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "amicrawl_session"},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
        },
    }


def _described(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    kind = "application/json" if operation.serve is None else "text/event-stream"
    problem = {MEDIA_TYPE: {"schema": schemas["problem"]}}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            str(operation.status): {
                "description": HTTPStatus(operation.status).phrase,
                "content": {kind: {"schema": schemas[f"{operation.name} response"]}},
            },
            **{
                str(status): {"description": title_of(status), "content": problem}
                for status in sorted(_problems(operation))
            },
        },
    }
    if parameters := _parameters(operation):
        described["parameters"] = parameters
    if operation.body is not None:
        body = {"application/json": {"schema": schemas[f"{operation.name} body"]}}
        described["requestBody"] = {"required": True, "content": body}
    described["security"] = []
    if operation.role is not None:
        session: dict[str, list[str]] = {"session": []}
        if operation.body is not None:
            session["csrf"] = []
        described["security"] = [{"bearer": []}, session]
        described["x-amicrawl-role"] = operation.role.name
    return described


def _problems(operation: Operation) -> set[int]:
    """Return the statuses of refusals that *operation* may have."""
    statuses = {403, 421, 422, 503}
    if operation.role is not None:
        statuses |= {401, 429}
    if operation.body is not None:
        statuses |= {409, 413, 415}
    if _PARTS.search(operation.path):
        statuses.add(404)
    return statuses


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    text = {"type": "string"}
    schema = operation.query.model_json_schema()
    required = schema.get("required", [])
    return [
        *(
            {"name": name, "in": "path", "required": True, "schema": text}
            for name in _PARTS.findall(operation.path)
        ),
        *(
            {"name": name, "in": "query", "required": name in required, "schema": one}
            for name, one in schema.get("properties", {}).items()
        ),
    ]

"""The OpenAPI document of the HTTP API, made of the table that serves it. Pure."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from amicrawl import __version__
from amicrawl.dashboard.operations import PREFIX
from amicrawl.dashboard.problems import MEDIA_TYPE, title_of
from amicrawl.dashboard.schemas import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from amicrawl.dashboard.operations import Operation

VERSION = "3.1.0"
_PARTS = re.compile(r"\{(\w+)\}")
_EVENTS = "text/event-stream"
_PROBLEM = {
    "type": "object",
    "description": "Why a request was not followed (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"where": {"type": "string"}, "what": {"type": "string"}},
            },
        },
    },
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document that describes *operations*."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = paths.setdefault(PREFIX + operation.path, {})
        described[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": VERSION,
        "info": {
            "title": "amicrawl dashboard",
            "version": __version__,
            "description": "Jobs: asked for, watched and steered. Times are Unix seconds, sizes bytes.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "amicrawl_session"},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
        },
    }


def _described(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    answered = {"schema": schema_of(operation.answer, schemas)}
    kind = _EVENTS if operation.serve is not None else "application/json"
    # FastAPI-like tools expect every status to be told, so the ones of all operations are, too.
    statuses = {*operation.problems, 403, 421, 422, 503}
    if operation.role is not None:
        statuses |= {401, 429}
    if operation.body is not None:
        statuses |= {413, 415}
    if "{ident}" in operation.path:
        statuses.add(404)
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            str(operation.status): {
                "description": HTTPStatus(operation.status).phrase,
                "content": {kind: answered},
            },
            **{
                str(status): {
                    "description": title_of(status),
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
                for status in sorted(statuses)
            },
        },
    }
    parameters = [*_path_parameters(operation), *_query_parameters(operation)]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        schema = _body_schema(operation.body, schemas)
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    if operation.role is not None:
        session: dict[str, list[str]] = {"session": []}
        if operation.body is not None:
            session["csrf"] = []
        described["security"] = [{"bearer": []}, session]
        described["x-amicrawl-role"] = operation.role.name
    else:
        described["security"] = []
    return described


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARTS.findall(operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    schema = operation.query.model_json_schema()
    required = set(schema.get("required", []))
    return [
        {"name": name, "in": "query", "required": name in required, "schema": one}
        for name, one in schema.get("properties", {}).items()
    ]


def _body_schema(kind: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    schemas[kind.__name__] = schema
    return {"$ref": f"#/components/schemas/{kind.__name__}"}

"""The OpenAPI document of the HTTP API, with the schemas that pydantic makes of its types. Pure."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from amicrawl import __version__
from amicrawl.dashboard.operations import PREFIX
from amicrawl.dashboard.problems import MEDIA_TYPE, title_of
from amicrawl.dashboard.shapes import ProblemFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.dashboard.operations import Operation

VERSION = "3.1.0"
_PARTS = re.compile(r"\{(\w+)\}")
_REFERENCE = "#/components/schemas/{model}"


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document that describes *operations*."""
    kinds: dict[str, Any] = {"problem": ProblemFacts}
    for operation in operations:
        kinds[f"{operation.name} answer"] = operation.answer
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
                "content": {kind: {"schema": schemas[f"{operation.name} answer"]}},
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

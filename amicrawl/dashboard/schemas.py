"""JSON schemas of the shapes that the API answers with, read off their types. Pure."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def schema_of(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of *kind*; that of each named shape goes into *schemas*.

    Raises TypeError for a type that no answer has so far.
    """
    if kind is Any:
        return {}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if is_typeddict(kind):
        if kind.__name__ not in schemas:
            schemas[kind.__name__] = {}  # a shape may hold itself
            schemas[kind.__name__] = _object(kind, schemas)
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    return _composed(kind, get_origin(kind), get_args(kind), schemas)


def _composed(
    kind: Any, origin: Any, arguments: tuple[Any, ...], schemas: dict[str, Any]
) -> dict[str, Any]:
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in {Union, UnionType}:
        return {"anyOf": [schema_of(argument, schemas) for argument in arguments]}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0], schemas)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], schemas)}
    raise TypeError(f"{kind} has no schema yet")


def _object(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    properties, required = {}, []
    for name, one in get_type_hints(kind, include_extras=True).items():
        if get_origin(one) is NotRequired:
            properties[name] = schema_of(get_args(one)[0], schemas)
        else:
            properties[name] = schema_of(one, schemas)
            required.append(name)
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip(),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }

"""Who may sign in, over the API: for admins, and only where there is a users file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amicrawl.dashboard.problems import Problem
from amicrawl.dashboard.users import Role, Users

if TYPE_CHECKING:
    from amicrawl.dashboard.operations import Call
    from amicrawl.dashboard.shapes import KnownUser


def list_users(call: Call) -> Any:
    """List who may sign in."""
    return {"users": known_users(_users(call))}


def put_user(call: Call) -> Any:
    """Add a user, or give one another role or password."""
    users, body = _users(call), call.body
    role = Role[body.role]
    if role < Role.admin:
        _keep_an_admin(users, body.name)
    users.put(body.name, role=role, password=body.password)
    return {"users": known_users(users)}


def add_token(call: Call) -> Any:
    """Make a token for a user; it is shown this once."""
    return {"token": _users(call).add_token(call.path["name"])}


def remove_user(call: Call) -> Any:
    """Remove a user, with all tokens and sessions."""
    users = _users(call)
    _keep_an_admin(users, call.path["name"])
    users.remove(call.path["name"])
    return {"users": known_users(users)}


def known_users(users: Users) -> list[KnownUser]:
    """Return what may be shown of *users*."""
    return [
        {
            "name": user.name,
            "role": user.role.name,  # type: ignore[typeddict-item]  # one of three
            "has_password": user.password is not None,
            "tokens": len(user.tokens),
        }
        for user in users.all().values()
    ]


def _users(call: Call) -> Users:
    if call.site.visitors.users is None:
        raise Problem(409, "There is no users file. Start the dashboard with --users FILE.")
    return call.site.visitors.users


def _keep_an_admin(users: Users, but: str) -> None:
    """Raise Problem where *but* is the last who may say who signs in."""
    everybody = users.all()
    if but in everybody and everybody[but].role is Role.admin:
        others = [u for u in everybody.values() if u.role is Role.admin and u.name != but]
        if not others:
            raise Problem(409, f"{but} is the last admin. Make another user one first.")

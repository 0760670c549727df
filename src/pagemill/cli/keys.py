"""`pagemill keys`: who may use the document service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from pagemill.domain import ApiKey
from pagemill.domain.errors import MissingDependencyError
from pagemill.gateway.options import GatewayOptions
from pagemill.settings import load_settings

if TYPE_CHECKING:
    from pagemill.jobs.store import KeyStore

T = TypeVar("T")

keys_app = typer.Typer(no_args_is_help=True, help="API keys of the document service.")

_Config = Annotated[Path | None, typer.Option(help="Settings file.  [default: pagemill.toml]")]
_Data = Annotated[Path | None, typer.Option(help="Data folder of the service.  [default: pagemill-data]")]


@keys_app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="For people: whose key it is.")],
    admin: Annotated[bool, typer.Option("--admin", help="It sees the jobs of all keys.")] = False,
    data: _Data = None,
    config: _Config = None,
) -> None:
    """Makes a key and prints it; it is shown only this once."""

    async def create(keys: KeyStore) -> tuple[ApiKey, str]:
        return await keys.create(name, admin=admin)

    made, key = _with_keys(config, data, create)
    typer.echo(key)
    Console(stderr=True).print(
        f"Key {made.id} for {made.name}{', an administrator' if made.admin else ''}. It is not shown again.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


@keys_app.command("list")
def list_keys(data: _Data = None, config: _Config = None) -> None:
    """Lists all keys, withdrawn ones too."""

    async def find_all(keys: KeyStore) -> list[ApiKey]:
        return await keys.all_keys()

    # `revoke` takes ids, and programs read this as 80 columns: nothing may be cut, and an id stays in one piece.
    table = Table(box=None, pad_edge=False)
    for column in ("Id", "Name", "Admin", "Made", "Last used", "Withdrawn"):
        table.add_column(column, overflow="fold", no_wrap=column == "Id")
    for key in _with_keys(config, data, find_all):
        times = (key.created_at, key.last_used_at, key.revoked_at)
        table.add_row(key.id, key.name, "yes" if key.admin else "", *map(_time, times))
    Console().print(table, markup=False)


@keys_app.command("revoke")
def revoke_key(
    name: Annotated[str, typer.Argument(help="Name or id of the key.")], data: _Data = None, config: _Config = None
) -> None:
    """Withdraws a key at once."""

    async def revoke(keys: KeyStore) -> ApiKey:
        return await keys.revoke(name)

    key = _with_keys(config, data, revoke)
    typer.echo(f"Withdrawn: {key.id} ({key.name})")


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _with_keys(config: Path | None, data: Path | None, action: Callable[[KeyStore], Awaitable[T]]) -> T:
    settings = load_settings(config, {"gateway": {} if data is None else {"data": data}})
    return asyncio.run(_run(settings.gateway, action))


async def _run(options: GatewayOptions, action: Callable[[KeyStore], Awaitable[T]]) -> T:
    try:
        # The rest of the command line must work without the packages of the service.
        from pagemill.gateway.runtime import database_url  # noqa: PLC0415
        from pagemill.jobs.sql import SqlKeyStore, open_database  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"Keys need a package that is not installed ({error}).", "Install it with: pip install 'pagemill[gateway]'"
        ) from error
    database = open_database(database_url(options), options.store, process_id="pagemill-keys")
    try:
        await database.start()
        return await action(SqlKeyStore(database))
    finally:
        await database.aclose()

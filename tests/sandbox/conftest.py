"""One server for all tests that only ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.stock_client import Connection, Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("inductor"), workers=2) as server:
        yield server


@pytest.fixture
def connection(server: Server) -> Connection:
    return server.connections[0]

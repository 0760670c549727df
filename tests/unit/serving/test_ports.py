from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pagemill.domain.errors import ConfigurationError
from pagemill.serving.ports import choose_port, listening_inodes, who_listens

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0
   1: 0100007F:1F40 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 222 1 0
   2: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 333 1 0
"""


def test_only_listeners_on_the_port_count() -> None:
    assert listening_inodes(TABLE, 8000) == {"socket:[111]"}


def test_a_taken_port_names_the_process_that_has_it() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"Port {port} .* \(pid {os.getpid()}\).*--port auto"):
            choose_port("127.0.0.1", port)
        assert other.getsockname()[1] == port
        assert choose_port("127.0.0.1", "auto") != port
    assert choose_port("127.0.0.1", port) == port


def test_who_listens_is_unknown_without_proc(tmp_path: Path) -> None:
    assert who_listens(8000, tmp_path) is None


def test_addresses_of_other_machines_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be an address of this machine"):
        choose_port("192.0.2.77", 8000)

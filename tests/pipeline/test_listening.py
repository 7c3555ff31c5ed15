"""A listener's connections send at once; why an address cannot be had is told by what the system says, and blames the host or the port."""

import asyncio
import errno
import os
import socket

import pytest

from pipeline.listening import cannot_listen, listen


def told(host: str, port: int) -> str:
    with pytest.raises(OSError) as caught, socket.socket() as s:
        s.bind((host, port))
    return cannot_listen("console", host, port, caught.value)


def test_a_taken_port_is_the_ports_fault() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert told("127.0.0.1", port) == f"console cannot use 127.0.0.1:{port} (Address already in use): set console.port in the settings"


@pytest.mark.parametrize("host", ["192.0.2.7", "nobody-of-that-name.invalid", "::1"])  # TEST-NET-1, no name, another family
def test_an_address_that_is_not_ours_is_the_hosts_fault(host: str) -> None:
    assert told(host, 0).endswith("): set console.host in the settings")


def test_a_port_that_needs_more_rights_is_the_ports_fault() -> None:
    error = OSError(errno.EACCES, os.strerror(errno.EACCES))
    assert (
        cannot_listen("agent", "127.0.0.1", 80, error)
        == "agent cannot use 127.0.0.1:80 (Permission denied): set agent.port in the settings"
    )


def test_a_small_answer_does_not_wait_for_the_acknowledgement_of_its_first_half() -> None:
    """Under asyncio, as ingest serves: what is accepted there has Nagle's algorithm (RFC 896) switched off."""

    async def accepted() -> int:
        heard: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen("127.0.0.1", 0) as listener:
            async with await asyncio.start_server(on_connection, sock=listener):
                with socket.create_connection(listener.getsockname()):
                    return await heard

    assert asyncio.run(accepted()) == 1

# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check that requests name a host of the server.

A web page of any origin may resolve its name to this machine (DNS rebinding).
Browsers would then treat the server as part of that origin. Requests of the
page still carry its name in the header Host, by which the server refuses them.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence

from configure.errors import UserError
from electra_tf.extras.serving.protocol import RequestError

_MISDIRECTED = 421  # HTTP status Misdirected Request (RFC 9110, 15.5.20)
_LOOPBACK = "localhost"
_SHOWN = 100  # maximum number of characters of an unknown name in a message
# The pattern of a name, an IPv4 address or an IPv6 address in brackets, each
# with an optional port.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.%\w-]+)\]|([^\s:/@\[\]]+))(?::(\d*))?")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII)


class HostCheck:
    """A check that the header Host of a request names the server."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """Check and normalize the allowed names.

        Args:
          allowed: names or addresses in addition to those that the server
            listens on, without ports, in any case; IPv6 addresses with or
            without brackets.

        Raises:
          UserError: an item of `allowed` is neither a name nor an address.
        """
        self._allowed = {_checked(name) for name in allowed}
        self._listening: set[str] = set()
        self._is_wildcard = False

    def listen(self, host: str, addresses: Iterable[str]) -> None:
        """Accept the addresses that the server listens on, and its host."""
        names = {_normalized(name) for name in (host, *addresses)}
        self._listening |= names
        self._is_wildcard |= any(map(_is_unspecified, names))
        if self._is_wildcard or any(map(_is_loopback, names)):
            self._listening.add(_LOOPBACK)

    def check(self, headers: Sequence[str], local_address: str | None) -> None:
        """Refuse a request that is for another host.

        Args:
          headers: the values of the request's Host headers.
          local_address: the address at which the connection arrived.

        Raises:
          RequestError: status 400 for an absent, repeated or invalid header,
            status 421 for another host.
        """
        match = _HOST.fullmatch(headers[0].strip()) if headers else None
        if len(headers) != 1 or match is None:
            raise RequestError(
                f"The header Host is {_quoted(headers)}; expected one name or"
                " address with an optional port. Correct the header."
            )
        name = _normalized(match[1] or match[2])
        if name in self._listening or name in self._allowed:
            return
        if self._is_wildcard and (
            _is_loopback(name) or name == _normalized(local_address or "")
        ):
            return
        shown = name[:_SHOWN]
        raise RequestError(
            f"The header Host is {shown!r}; expected an address that the server"
            f" listens on ({', '.join(sorted(self._listening))}) or a name in"
            f" --allowed_hosts. To accept {shown}, start the server with"
            f" --allowed_hosts={shown}",
            _MISDIRECTED,
        )


def _checked(name: str) -> str:
    """Return a name of --allowed_hosts in normal form; refuse invalid names."""
    normalized = _normalized(name.strip().removeprefix("[").removesuffix("]"))
    if _address(normalized) is None and not _NAME.fullmatch(normalized):
        raise UserError(
            f"--allowed_hosts: {name!r} is neither a host name nor an address."
            " Pass names without scheme and port, separated by commas, such as"
            " --allowed_hosts=models.example.org,10.0.0.7"
        )
    return normalized


def _normalized(name: str) -> str:
    """Return a name in lower case, or an address in its shortest form."""
    # An address may end in a scope (fe80::1%eth0), which is ignored.
    name = name.lower().partition("%")[0]
    address = _address(name)
    if address is None:
        return name.removesuffix(".")
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _address(
    name: str,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == _LOOPBACK if address is None else address.is_loopback


def _is_unspecified(name: str) -> bool:
    address = _address(name)
    return name == "" if address is None else address.is_unspecified


def _quoted(headers: Sequence[str]) -> str:
    if not headers:
        return "missing"
    return ", ".join(repr(header[:_SHOWN]) for header in headers[:2])

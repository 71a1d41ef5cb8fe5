"""Tokens and addresses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers

from foretide.errors import InvalidConfig
from foretide.web.security import SHORTEST_TOKEN, Token, is_loopback


def test_a_made_token_is_long_new_and_never_shown() -> None:
    token = Token.new()
    assert len(token.text) >= 32
    assert token.text != Token.new().text
    assert token.text not in repr(token)
    assert token.text not in str(token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "x" * (SHORTEST_TOKEN - 1),
        "with spaces in between it",
        "täglich-grüßt-das-token",
        "a" * 20 + "\n",
    ],
)
def test_a_weak_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="at least 16"):
        Token(text)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_only_the_token_itself_is_admitted(given_: str) -> None:
    token = Token("the-right-token-of-today")
    header = [(b"authorization", given_.encode("latin-1"))]
    assert not token.admits(Headers(raw=header))
    assert token.admits(Headers(raw=[(b"authorization", b"Bearer the-right-token-of-today")]))
    assert token.admits(Headers(raw=[(b"authorization", b"bearer the-right-token-of-today")]))
    assert not token.admits(Headers(raw=[]))


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "", "127.0.0.1.example.org"]
)
def test_what_others_can_reach_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)

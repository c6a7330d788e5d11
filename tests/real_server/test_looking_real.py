"""Looking around on a real Hindsight server: what the user asks beside the agent's tools makes and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from ipy_memory.errors import BankNotFoundError, HindsightError
from tests.real_server.conftest import Agent

if TYPE_CHECKING:
    from tests.real_server.remote import Remote
    from tests.services.hindsight_server import HindsightServer

pytestmark = pytest.mark.hindsight

Open = Callable[..., Agent]


def test_b060_a_typo_makes_no_bank_and_names_the_near_ones(agent: Open, remote: Remote) -> None:
    me = agent()
    me.session.retain("Here")
    me.session.flush()
    remote.settle(me.bank)
    before = remote.banks()
    typo = f"{me.bank}x"
    for ask in (me.session.recall, me.session.reflect):
        with pytest.raises(BankNotFoundError, match=typo) as caught:
            ask("anything", bank=typo)
        assert me.bank in caught.value.one_line()
    with pytest.raises(BankNotFoundError, match=typo):
        me.session.memories(typo)
    assert remote.banks() == before
    assert "Here" in me.session.recall("here", bank=me.bank).text


def test_b127_a_bank_that_is_not_there_is_described(agent: Open, remote: Remote) -> None:
    me = agent()
    assert me.session.memories().empty
    assert me.session.stats() == f"Bank {me.bank} is not there yet: the first retain makes it."
    assert "- bank: not there yet" in me.session.diagnose()
    assert me.bank not in remote.banks()


def test_the_bank_and_the_way_to_it_are_described(agent: Open, remote: Remote) -> None:
    me = agent()
    me.session.retain(["One", "Two"])
    me.session.flush()
    assert remote.texts(me.bank) == ["One", "Two"]
    told = me.session.diagnose()
    assert "- health: healthy, database connected" in told
    assert f"- bank: {me.bank}, 2 memories" in told
    assert "- queue: nothing waits" in told
    assert "- memories: 2 (world 2)" in me.session.stats()
    assert f"- server: version {me.backend.service.client.version()['api_version']}" in told


def test_a_wrong_key_is_told_from_a_server_that_is_down(agent: Open, hindsight_server: HindsightServer) -> None:
    told = agent(token="a-very-wrong-token").session.diagnose()
    assert "Authentication failed: Invalid API key – check hindsight.apiToken" in told
    assert "a-very-wrong-token" not in told
    me = agent()
    hindsight_server.kill()
    try:
        told = me.session.diagnose()
        with pytest.raises(HindsightError, match="no connection to the server"):
            me.session.stats()
    finally:
        hindsight_server.start()
    assert told.count("not well: ") == 4  # all but the queue, which is here


def test_silent_trouble_is_said(agent: Open, remote: Remote) -> None:
    me = agent(recallTypes=["opinion"])
    me.session.retain("Deploys go to fly.io")
    me.session.flush()
    remote.settle(me.bank)
    (types, long) = me.session.recall("deploys " * 600).notes
    assert "'opinion'" in types
    assert "500 tokens" in long


def test_a_bank_can_be_deleted_by_hand(agent: Open, remote: Remote) -> None:
    me = agent()
    me.backend.service.ensure_bank()
    assert me.bank in remote.banks()
    assert me.backend.service.client.delete_bank(me.bank)["success"] is True
    assert me.bank not in remote.banks()

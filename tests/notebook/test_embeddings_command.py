"""``%memory embeddings`` in a shell, on real bank files."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from ipy_memory.backends.mnemopi.embeddings.providers import CallableEmbedder
from ipy_memory.errors import EmbeddingError, MagicError, MissingFeatureError
from ipy_memory.session import open_session
from tests.services.openai_stub import OpenAIStub, vector

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook.conftest import Notebook


@pytest.fixture
def real(bare: Notebook, tmp_path: Path) -> Notebook:
    """A notebook on an empty database."""
    magics = bare.magics
    magics.world = {"env": {}}
    magics.cwd, magics.agent_dir, magics.database = "/proj/shop", str(tmp_path), str(tmp_path / "mem" / "mnemopi.db")
    bare.run("%memory use mnemopi")
    return bare


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipy_memory.backends.mnemopi.embeddings.model_files.installed", lambda: False)


def adopt(real: Notebook, folder: Path, size: int, model: str) -> None:
    """Let the magics work on a session with an embedder."""
    embedder = CallableEmbedder(model, lambda texts: [vector(text, size) for text in texts])
    real.magics.adopt(
        open_session("mnemopi", cwd="/p", database=folder / "mem" / "mnemopi.db", agent_dir=folder, embedder=embedder)
    )


def models(folder: Path) -> set[str]:
    (path,) = (folder / "mem" / "banks").glob("*/mnemopi.db")
    connection = sqlite3.connect(path)
    try:
        return {row[0] for row in connection.execute("SELECT model FROM memory_embeddings")}
    finally:
        connection.close()


def test_status_counts_by_bank_and_model(real: Notebook, tmp_path: Path) -> None:
    adopt(real, tmp_path, 4, "old")
    real.run("%retain the fog horn is loud")
    adopt(real, tmp_path, 8, "new")
    real.run("%%retain --lines\ntea is at four\ncake is at five")
    real.magics.session.flush()
    shown = real.run("%memory embeddings").result
    assert [row[1:] for row in shown.rows] == [("3", "2", "new", "2", "8"), ("3", "2", "old", "1", "4")]
    (note,) = shown.notes
    assert note.startswith("Vectors are in use: new, given by the caller; 2 of 3 memories have one")
    assert real.run("%memory embeddings status").outputs == real.run("%memory embeddings").outputs
    assert "%memory embeddings reindex" in real.run("%recall fog horn").outputs[0]["text/html"]


def test_reindex_says_what_it_did_and_where_the_copy_is(real: Notebook, tmp_path: Path) -> None:
    adopt(real, tmp_path, 4, "old")
    real.run("%retain the fog horn is loud")
    adopt(real, tmp_path, 8, "new")
    text = real.run("%memory embeddings reindex").outputs[0]["text/plain"]
    assert "1 vectors computed" in text
    assert ".backup" in text
    assert models(tmp_path) == {"new"}
    assert "0 vectors computed" in real.run("%memory embeddings --missing reindex").outputs[0]["text/plain"]
    bank = real.magics.session.live_backend().retain_bank
    assert "1 vectors computed" in real.run(f"%memory embeddings --bank {bank} reindex").outputs[0]["text/plain"]


@pytest.mark.usefixtures("without_package")
def test_without_an_embedder_reindex_is_refused_and_nothing_changes(real: Notebook, tmp_path: Path) -> None:
    adopt(real, tmp_path, 4, "old")
    real.run("%retain the fog horn is loud")
    real.magics.adopt(open_session("mnemopi", cwd="/p", database=tmp_path / "mem" / "mnemopi.db", agent_dir=tmp_path))
    ran = real.run("%memory embeddings reindex")
    assert isinstance(ran.error, EmbeddingError)
    assert ran.stdout.count("\n") == 1
    assert "the stored vectors stay" in ran.stdout
    assert models(tmp_path) == {"old"}
    assert isinstance(real.run("%memory embeddings download").error, MissingFeatureError)


@pytest.mark.parametrize("cell", ["%memory embeddings rebuild", "%memory embeddings --missing status"])
def test_a_wrong_word_or_flag_is_an_error(real: Notebook, cell: str) -> None:
    assert isinstance(real.run(cell).error, MagicError)


def test_a_configured_endpoint_is_used_by_the_magics(real: Notebook, tmp_path: Path) -> None:
    with OpenAIStub() as stub:
        (tmp_path / "config.yml").write_text(f"mnemopi:\n  embeddingApiUrl: {stub.url}\n  embeddingModel: stub\n")
        real.run("%retain a note from the harbour")
        status = {row[0]: row[1] for row in real.run("%memory status").result.rows}
        assert status["vectors"].startswith("in use: stub, 127.0.0.1:")
        assert status["waiting"] == "1"
        real.run("%memory use mnemopi")
        real.magics.close_session()
        assert [body["input"] for _, body in stub.requests] == [["a note from the harbour"]]

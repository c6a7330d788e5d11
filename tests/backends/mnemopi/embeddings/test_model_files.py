"""Where a local model's files are, and which folders hold them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipy_memory.backends.mnemopi.embeddings.model_files import files_of, missing_of, models_folder


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"HOME": "/h"}, "/h/.cache/ipy_memory/models"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/c"}, "/c/ipy_memory/models"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/c", "FASTEMBED_CACHE_PATH": "/f"}, "/f"),
    ],
)
def test_the_folder(env: dict[str, str], folder: str) -> None:
    assert models_folder(env) == Path(folder)


def test_a_model_is_there_when_a_folder_of_its_name_holds_weights(tmp_path: Path) -> None:
    def add(name: str, file: str) -> Path:
        path = tmp_path / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return tmp_path / name

    assert files_of(tmp_path / "nowhere", "BAAI/bge-base-en-v1.5") == []
    add("models--qdrant--bge-base-en-v1.5-onnx-q", "snapshots/1/config.json")
    add("models--qdrant--all-minilm-l6-v2-onnx", "snapshots/1/model.onnx")
    add("models--qdrant--bge-base-en-v1.5-onnx-q.damaged", "snapshots/1/model.onnx")
    assert files_of(tmp_path, "BAAI/bge-base-en-v1.5") == []
    repacked = add("models--Qdrant--bge-base-en-v1.5-onnx-Q", "snapshots/1/model_optimized.onnx")
    archive = add("fast-bge-base-en-v1.5", "model_optimized.onnx")
    split = add("models--qdrant--multilingual-e5-large-onnx", "snapshots/1/model.onnx_data")
    assert files_of(tmp_path, "BAAI/bge-base-en-v1.5") == [archive, repacked]
    assert files_of(tmp_path, "intfloat/multilingual-e5-large") == [split]


def test_one_whole_copy_of_a_model_is_enough(tmp_path: Path) -> None:
    model, first, second = "BAAI/bge-base-en-v1.5", tmp_path / "bge-base-en-v1.5", tmp_path / "x-bge-base-en-v1.5"
    assert missing_of(tmp_path, model) == []
    for folder, names in ((first, ["model.onnx"]), (second, ["model.onnx", "config.json"])):
        (folder / "snapshots").mkdir(parents=True)
        for name in names:
            (folder / "snapshots" / name).touch()
    assert missing_of(tmp_path, model) == ["tokenizer.json"]
    (second / "snapshots" / "tokenizer.json").symlink_to(tmp_path / "never fetched")
    assert missing_of(tmp_path, model) == ["tokenizer.json"]
    (tmp_path / "never fetched").touch()
    assert missing_of(tmp_path, model) == []

"""Bank names, project labels, legacy banks and settings."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi.legacy import legacy_banks
from ipy_memory.clock import base36
from ipy_memory.errors import BankNameError
from ipy_memory.jscompat.strings import well_formed, wyhash
from ipy_memory.scoping.modes import BankScope, bank_path, bank_scope, hindsight_scope, mnemopi_scope, project_segment
from ipy_memory.settings.resolve import (
    HindsightConfig,
    MnemopiConfig,
    Settings,
    hindsight_config,
    load_settings,
    mnemopi_config,
)
from ipy_memory.settings.table import SETTINGS
from tests.conformance.registry import Case, kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

GIT_SETUP = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


@kind("wyhash")
def run_wyhash(case: Case) -> Any:
    number = wyhash(well_formed(case.input).encode())
    return {"decimal": str(number), "base36": base36(number)}


@kind("project_bank_segment")
def run_segment(case: Case) -> Any:
    return project_segment(case.input)


@kind("bank_scope")
def run_bank_scope(case: Case) -> Any:
    given = case.input
    return scope_fields(
        bank_scope(given["configured"], given["cwd"], given["scoping"], process_cwd=given["process_cwd"])
    )


def scope_fields(scope: BankScope) -> dict[str, Any]:
    return {
        "baseBank": scope.base_bank,
        "bank": scope.bank,
        "globalBank": scope.global_bank,
        "retainBank": scope.retain_bank,
        "recallBanks": list(scope.recall_banks),
    }


@kind("bank_manager")
def run_bank_manager(case: Case) -> Any:
    try:
        path = bank_path(case.scratch / "mnemopi.db", case.input)
    except BankNameError as error:
        return {"error": error.message, "name": "ValueError"}
    return {"path": path.relative_to(case.scratch).as_posix()}


# Settings -----------------------------------------------------------------------------------------------------------


@kind("settings_defaults")
def run_defaults(case: Case) -> Any:
    setting = SETTINGS[case.input]
    default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    return {
        "type": setting.type,
        "default": default,
        "has_default": default is not None,
        **({"values": list(setting.values)} if setting.values else {}),
        **({"credential": True} if setting.credential else {}),
        "label": setting.label,
        "description": setting.description,
    }


@kind("settings_hindsight")
def run_hindsight_settings(case: Case) -> Any:
    config = hindsight_config(settings_from_file(case))
    renamed = {"apiUrl": "hindsightApiUrl", "apiToken": "hindsightApiToken"}
    ours = {"mentalModelRefreshIntervalMs", "safeRetain"}
    fields = camel_fields(config)
    shown = {renamed.get(name, name): value for name, value in fields.items() if name not in ours}
    return {"config": shown, "configured": config.configured}


@kind("settings_mnemopi")
def run_mnemopi_settings(case: Case) -> Any:
    config = mnemopi_config(settings_from_file(case), case.input["agentDir"])
    fields = {name: value for name, value in camel_fields(config).items() if value is not None}
    del fields["embeddingUserKeys"]  # ours
    llm = {"baseUrl": config.llm_base_url, "apiKey": config.llm_api_key, "model": config.llm_model}
    provider = {name: fields.pop(name) for name in [*fields] if name == "noEmbeddings" or name.startswith("embedding")}
    provider |= {"debug": config.debug, "llm": present(llm) if config.llm_mode == "remote" else False}
    fields.pop("bank", None)
    return {"config": fields | scope_fields(mnemopi_scope(config, case.input["cwd"])) | {"providerOptions": provider}}


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def settings_from_file(case: Case) -> Settings:
    agent = case.scratch / "agent"
    agent.mkdir()
    sections: dict[str, dict[str, Any]] = {}
    for name, value in case.input["settings"].items():
        section, _, rest = name.partition(".")
        sections.setdefault(section, {})[rest] = value
    (agent / "config.yml").write_text(json.dumps(sections, ensure_ascii=False), encoding="utf-8")
    return load_settings(agent, case.scratch / "project", case.input["env"])


def camel_fields(config: HindsightConfig | MnemopiConfig) -> dict[str, Any]:
    values = {name: getattr(config, name) for name in config.__dataclass_fields__}
    return {
        re.sub("_([a-z])", lambda found: found[1].upper(), name): list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


# Legacy banks -------------------------------------------------------------------------------------------------------


@kind("legacy_rescue")
def run_legacy(case: Case) -> Any:
    case.scratch.chmod(0o755)
    entries, resolved = case.input["entries"], case.input["resolved"]
    many = isinstance(entries, dict)
    entries = entries["entries"] if many else entries
    for entry in entries:
        make_entry(case.scratch, entry, os.path.normpath(case.input["cwd"]))
    try:
        with as_other_user(any("note" in entry for entry in entries)):
            verdicts = legacy_banks(case.scratch / "mnemopi.db", case.input["cwd"], resolved)
    finally:
        for entry in entries:
            if "note" in entry:
                (case.scratch / "banks" / entry["name"]).chmod(0o755)
    banks = case.scratch / "banks"
    order = [item.name for item in os.scandir(banks)] if banks.is_dir() else []
    extras = [verdict.name for verdict in verdicts if verdict.rescued]
    answer = {
        "prefix": resolved,
        "extras_follow_directory_order": extras == [name for name in order if name in extras],
    }
    if many:
        good = {entry["name"] for entry in entries if entry["cwd_ok"]}
        return answer | {"extras_count": len(extras), "extras_subset_of_good": good.issuperset(extras)}
    return answer | {"extras_sorted": sorted(extras)}


def make_entry(root: Path, entry: Mapping[str, Any], cwd: str) -> None:
    folder = root / "banks" / entry["name"]
    folder.parent.mkdir(exist_ok=True)
    good = [{"content": "x", "meta": json.dumps({"cwd": cwd if entry.get("cwd_ok", True) else f"{cwd}-other"})}]
    outside = root / f"outside-{entry['name']}"
    match entry["kind"]:
        case "file":
            folder.write_text("x")
            return
        case "symlink-dir":
            make_bank(outside, good)
            folder.symlink_to(outside)
            return
    folder.mkdir()
    match entry["kind"]:
        case "db":
            make_bank(folder, entry.get("rows", good), wal="note" in entry)
        case "corrupt":
            (folder / "mnemopi.db").write_text("this is no database, only text that is long enough to be one\n" * 40)
        case "zero":
            (folder / "mnemopi.db").touch()
        case "symlink-db":
            make_bank(outside, good)
            (folder / "mnemopi.db").symlink_to(outside / "mnemopi.db")
    if "note" in entry:
        (folder / "mnemopi.db").chmod(noted_mode(entry["note"], "file", 0o666))
        unwritable = "cannot write" in entry["note"]
        folder.chmod(noted_mode(entry["note"], "directory", 0o555 if unwritable else 0o777))


def noted_mode(note: str, what: str, usual: int) -> int:
    """Return the mode that a note gives to the file or the directory."""
    found = re.search(rf"{what} (?:mode )?(\d+)", note)
    return int(found[1], 8) if found else usual


def make_bank(folder: Path, rows: Any, *, wal: bool = False) -> None:
    folder.mkdir(exist_ok=True)
    connection = sqlite3.connect(folder / "mnemopi.db")
    try:
        if wal:
            connection.execute("PRAGMA journal_mode=WAL")
        if rows == "no-table":
            connection.execute("CREATE TABLE other (id)")
        else:
            connection.execute("CREATE TABLE working_memory (id INTEGER PRIMARY KEY, content TEXT, metadata_json TEXT)")
        if isinstance(rows, list):
            statement = "INSERT INTO working_memory (content, metadata_json) VALUES (:content, :meta)"
            connection.executemany(statement, rows)
        connection.commit()
    finally:
        connection.close()


@contextmanager
def as_other_user(wanted: bool) -> Iterator[None]:
    """Give up the rights of root for a while, if they are held."""
    if not wanted or os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


# Project labels -----------------------------------------------------------------------------------------------------


@kind("hindsight_scope")
def run_hindsight_scope(case: Case) -> Any:
    root = layouts(case.corpus, case.kind)
    given = case.input["config"]
    names = {"bank_id": given["bankId"], "bank_id_prefix": given["bankIdPrefix"], "scoping": given["scoping"]}
    config = replace(hindsight_config(Settings()), **names)
    scope = hindsight_scope(config, case.input["directory"].replace("$ROOT", root), process_cwd=root)
    answer: dict[str, Any] = {"bankId": scope.bank_id}
    if scope.retain_tags is not None and scope.recall_tags is not None:
        answer["retainTags"], answer["recallTags"] = list(scope.retain_tags), list(scope.recall_tags)
        answer["recallTagsMatch"] = scope.tags_match
    return answer


@functools.cache
def layouts(corpus: Path, stem: str) -> str:
    """Return a folder in which every layout of the file was made, in file order."""
    root = tempfile.mkdtemp(prefix="ipy-memory-layouts-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    path = next(found for folder in ("", "units") if (found := corpus / folder / f"{stem}.json").is_file())
    done: list[Any] = []
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
        layout = case["input"]["rebuild"]
        if layout is None or layout in done:
            continue
        done.append(layout)
        given = dict(pair.split("=", 1) for pair in shlex.split(layout["env"]))
        environment = {"PATH": os.environ["PATH"], "HOME": root, **GIT_SETUP, **given}
        for line in layout["shell"]:
            subprocess.run(["sh", "-c", line], cwd=root, env=environment, check=True, capture_output=True)
    return root

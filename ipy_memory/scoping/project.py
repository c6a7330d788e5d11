"""Which project a directory belongs to, found without starting git."""

from __future__ import annotations

import posixpath
from pathlib import Path

from ipy_memory.jscompat.strings import lower

_LINK_LIMIT = 65_536
# What the walk strips from the text of a ``.git`` file: white space, but no byte order mark.
_SPACE = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_SPACE += "\u2028\u2029\u202f\u205f\u3000"


def resolve_path(cwd: str, process_cwd: str | None = None) -> str:
    """Return the absolute, normalised form of a directory; a blank one is the process's own."""
    path = posixpath.normpath(posixpath.join("/", _from(cwd or ".", process_cwd)))
    return "/" + path.lstrip("/")


def project_label(cwd: str, process_cwd: str | None = None) -> str:
    """Return the name of the project that a directory belongs to, in lower case.

    The name is that of the primary checkout of the repository around the directory: linked worktrees share
    it, a bare repository's worktrees bear the repository's own name. Outside a repository it is the
    directory's name, and ``unknown`` where there is none.
    """
    root = _primary_root(_from(cwd, process_cwd)) if cwd else None
    return lower(posixpath.basename((cwd if root is None else root).rstrip("/"))) or "unknown"


def repository_root(cwd: str) -> str | None:
    """Return the primary checkout of the repository around a directory; ``None`` outside one."""
    return _primary_root(cwd)


def _from(cwd: str, process_cwd: str | None) -> str:
    return cwd if cwd.startswith("/") else posixpath.join(process_cwd or str(Path.cwd()), cwd)


def _primary_root(cwd: str) -> str | None:
    # Upwards by the letters of the path: ".." is no step up, "." is none at all.
    parts = [part for part in cwd.split("/") if part not in {"", "."}]
    for count in range(len(parts), -1, -1):
        root = "/" + "/".join(parts[:count])
        found = _git_dir(root)
        if found is not None:
            return _checkout(root, found)
    return None


def _git_dir(root: str) -> str | None:
    entry = Path(root, ".git")
    try:
        if entry.is_dir():
            found = str(entry)
        else:
            text = _text(entry)
            link = text.strip(_SPACE) if text else ""
            target = link.removeprefix("gitdir:").strip(_SPACE)
            if not target or target == link:
                return None
            found = str(Path(root, target))
        return found if Path(found, "HEAD").is_file() else None
    except (OSError, ValueError):
        return None


def _checkout(root: str, git_dir: str) -> str:
    # A linked worktree's git directory names the one it shares; a submodule's or a moved one names none.
    try:
        named = (_text(Path(git_dir, "commondir")) or "").strip(_SPACE)
    except OSError:
        named = ""
    common = posixpath.normpath(posixpath.join(git_dir, named)) if named else git_dir
    if posixpath.basename(common) == ".git":
        return posixpath.dirname(common)
    return root if common == git_dir else common


def _text(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        data = file.read(_LINK_LIMIT + 1)
    try:
        return data.decode() if len(data) <= _LINK_LIMIT else None
    except UnicodeDecodeError:
        return None

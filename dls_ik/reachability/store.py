"""One file or store for a map: ``.npz``, or ``.zarr``."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik.model.names import quoted
from dls_ik.reachability.chunk import Voxels
from dls_ik.reachability.defaults import SUFFIXES
from dls_ik.reachability.error import ReachabilityError
from dls_ik.reachability.map import ReachabilityMap
from dls_ik.reachability.settings import FORMAT, Settings

ABOUT = "about"  # the entry with settings and versions


def checked_store(path: str | os.PathLike[str]) -> Path:
    """Refuse, before the work begins, what no map could be written to.

    Raises:
        ReachabilityError: the reason.
    """
    store = Path(path)
    if store.suffix.lower() not in SUFFIXES:
        raise ReachabilityError(f"a map is stored as {' or '.join(SUFFIXES)}, not {store.name}")
    if not store.absolute().parent.is_dir():
        raise ReachabilityError(f"cannot write {path}: there is no directory {store.parent}")
    if not os.access(store.absolute().parent, os.W_OK | os.X_OK):
        raise ReachabilityError(f"cannot write {path}: permission denied")
    if _is_zarr(store):
        _zarr()
    return store


def save_map(found: ReachabilityMap, path: str | os.PathLike[str]) -> None:
    """See :meth:`ReachabilityMap.save`."""
    store = checked_store(path)
    part = store.with_name(f".{store.stem}.{os.getpid()}{store.suffix}")
    about = {
        "settings": found.settings.as_json(),
        "shoulder": list(found.shoulder),
        "versions": found.versions,
    }
    try:
        _write(part, found.voxels, about)
        if _is_zarr(store) and store.is_dir():
            shutil.rmtree(store)
        part.replace(store)
    except OSError as error:
        raise ReachabilityError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            _remove(part)


def load_map(path: str | os.PathLike[str]) -> ReachabilityMap:
    """See :meth:`ReachabilityMap.load`."""
    store = Path(path)
    if not store.exists():
        raise ReachabilityError(f"there is no map {quoted(os.fspath(path))}")
    try:
        arrays, about = _read(store)
        settings = Settings.from_json(about["settings"])
        shoulder = tuple(map(float, about["shoulder"]))
        found = ReachabilityMap(settings, Voxels(**arrays), shoulder, about["versions"])  # type: ignore[arg-type]
    except Exception as error:
        raise ReachabilityError(f"{quoted(os.fspath(path))} holds no map: {error}") from error
    if settings.format != FORMAT or any(a.shape != settings.shape for a in found.voxels):
        raise ReachabilityError(f"{quoted(os.fspath(path))} holds a map of another format")
    return found


def _write(part: Path, voxels: Voxels, about: dict[str, Any]) -> None:
    if _is_zarr(part):
        group = _zarr().open_group(str(part), mode="w")
        group.attrs[ABOUT] = about
        for name, array in voxels._asdict().items():
            group.create_array(name, data=array)
    else:
        with part.open("wb") as file:
            np.savez_compressed(file, **voxels._asdict(), about=np.array(json.dumps(about)))


def _read(store: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if _is_zarr(store):
        group = _zarr().open_group(str(store), mode="r")
        return {name: np.asarray(group[name]) for name in Voxels._fields}, dict(group.attrs[ABOUT])
    if not store.is_file():
        raise OSError("no regular file")
    with np.load(store, allow_pickle=False) as file:
        return {name: file[name] for name in Voxels._fields}, json.loads(str(file[ABOUT]))


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)


def _is_zarr(store: Path) -> bool:
    return store.suffix.lower() == ".zarr"


def _zarr() -> Any:
    try:
        return import_module("zarr")
    except ImportError as error:
        raise ReachabilityError(
            "a .zarr store needs zarr: pip install 'dls-ik[zarr]', or take .npz"
        ) from error

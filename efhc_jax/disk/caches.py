"""Cache of downloaded data and compiled programs.

It is optional: without it, data are decoded and programs compiled each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

_SEAL_BYTES = 32


def home() -> Path | None:
    """The user's home directory, or None: some containers and services have none."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def cache_folder() -> Path | None:
    """`efhc_jax` under `$XDG_CACHE_HOME` or `~/.cache`; None if there is neither."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "efhc_jax"
    at_home = home()
    return None if at_home is None else at_home / ".cache" / "efhc_jax"


def keep_programs() -> None:
    """Let JAX store compiled programs in the cache, if it is writable.

    A cache folder that the user has set for JAX is not changed.
    """
    import jax

    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    cache = cache_folder()
    if cache is None:
        return
    programs = cache / "xla"
    try:
        programs.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if not os.access(programs, os.R_OK | os.W_OK | os.X_OK):
        return
    _seal_programs(programs)
    jax.config.update("jax_compilation_cache_dir", str(programs))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def _seal_programs(programs: Path) -> None:
    """Let JAX append a checksum of name and contents to each file in this folder.

    JAX does not verify its cache: a truncated file causes a warning in every run, and a file under the
    wrong name fails or computes something else. With the checksum, both are compiled again. JAX has no
    public interface for this; if its internals have changed, its own cache is used unmodified.
    """
    try:
        from jax._src import compilation_cache
        from jax._src.lru_cache import LRUCache
    except ImportError:
        return

    class SealedCache(LRUCache):
        """JAX's cache, with a checksum at the end of each file in our folder."""

        def get(self, key: str) -> bytes | None:
            found = super().get(key)
            if found is None or str(self.path) != str(programs):
                return found
            content, seal = found[:-_SEAL_BYTES], found[-_SEAL_BYTES:]
            if seal == _seal(key, content):
                return content
            with contextlib.suppress(OSError):  # JAX does not overwrite an existing file
                (programs / f"{key}-cache").unlink()
            return None

        def put(self, key: str, value: bytes) -> None:
            super().put(key, value + _seal(key, value) if str(self.path) == str(programs) else value)

    compilation_cache.LRUCache = SealedCache  # type: ignore[misc]


def _seal(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).digest()

"""What the commands do before JAX computes anything."""

from __future__ import annotations

import os
from pathlib import Path


def start_jax() -> None:
    """Keep compiled programs on disk, so that the second run of a kind starts at once."""
    import jax

    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "efhc_jax" / "xla"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

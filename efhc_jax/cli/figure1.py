"""`efhc figure1`: the paper's evaluation in one command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from efhc_jax.cli.flags import Folder, OptionalFolder
from efhc_jax.text.printing import print_text

if TYPE_CHECKING:
    import xarray

Classifier = Annotated[Literal["svm", "lenet5"] | None, tyro.conf.arg(metavar="{svm,lenet5}")]
Panel = Annotated[Literal["i-iii", "iv"] | None, tyro.conf.arg(metavar="{i-iii,iv}")]


@dataclass(frozen=True)
class Figure1:
    """Run the paper's evaluation, draw its Figure 1, and check each of its claims.

    It can be stopped at any time; the same command resumes. `--preset quick` runs a small version on the
    included data within two minutes.
    """

    out: Folder = Path("out/figure1")
    """Folder for the sweeps, the figure and the claims."""
    preset: Literal["paper", "quick"] = "paper"
    """Size: the paper's setting on the full data, or a small version."""
    classifier: Classifier = None
    """Classifier to run; both by default."""
    panel: Panel = None
    """Panels to run; all by default."""
    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Number of seeds; by default that of the preset."""
    data_dir: OptionalFolder = None
    """Folder with the files of the dataset."""

    def execute(self) -> None:
        """Run the sweeps, draw the figure, and check the claims."""
        from efhc_jax.cli.startup import notes, one_device_a_core, start_jax
        from efhc_jax.data import load_dataset
        from efhc_jax.errors import ExperimentError
        from efhc_jax.papers.efhc import settings
        from efhc_jax.runs.grid import Grid
        from efhc_jax.runs.interrupts import stop_requests
        from efhc_jax.runs.sweeps import predict, sweep

        if self.seeds is not None and self.seeds < 2:
            raise ExperimentError(f"seeds={self.seeds}: intervals need 2 or more")
        start_jax()
        one_device_a_core(runs=len(settings.COMPARED) * 2)  # the runs of the smallest sweep
        data = load_dataset(settings.PRESETS[self.preset].dataset, self.data_dir)
        classifiers = [self.classifier] if self.classifier else list(settings.CLASSIFIERS)
        kinds = {"i-iii": settings.curves, "iv": settings.connectivity}
        wanted = [kinds[self.panel]] if self.panel else list(kinds.values())
        with notes(), stop_requests() as should_stop:
            for classifier in classifiers:
                for kind in wanted:
                    study = kind(classifier, self.preset, self.seeds)
                    line = predict(Grid.of(study.experiment, study.axes), data)
                    print(f"{study.name}: {line}", flush=True)
                    try:
                        sweep(
                            study.experiment,
                            data,
                            out=self.out / study.name,
                            should_stop=should_stop,
                            **study.axes,  # type: ignore[arg-type]
                        )
                    except KeyboardInterrupt:
                        print_text(f"Stopped. Run the same command again to resume from {self.out}")
                        raise
        self._finish()

    def _finish(self) -> None:
        from efhc_jax.disk.files import written_whole
        from efhc_jax.papers.efhc.claims import (
            as_json,
            as_markdown,
            claims_of_connectivity,
            claims_of_curves,
        )
        from efhc_jax.papers.efhc.figure import draw_figure1
        from efhc_jax.plotting.figures import save_figure

        parts = finished_parts(self.out)
        figure = draw_figure1(parts)
        written = [save_figure(figure, self.out / f"figure1.{ending}") for ending in ("png", "pdf")]
        claims = []
        for classifier, studies in parts.items():
            if "curves" in studies:
                claims += claims_of_curves(classifier, studies["curves"])
            if "connectivity" in studies:
                claims += claims_of_connectivity(classifier, studies["connectivity"])
        for name, text in (("claims.md", as_markdown(claims)), ("claims.json", as_json(claims))):
            with written_whole(self.out / name) as part:
                part.write_text(text, encoding="utf-8")
            written.append(self.out / name)
        print(as_markdown(claims))
        for path in written:
            print_text(f"wrote {path}")


def finished_parts(out: Path) -> dict[str, dict[str, xarray.Dataset]]:
    """The finished sweeps of the figure in the folder, by classifier."""
    from efhc_jax.papers.efhc.settings import CLASSIFIERS
    from efhc_jax.storage.netcdf import load

    parts: dict[str, dict[str, xarray.Dataset]] = {}
    for classifier in CLASSIFIERS:
        for study in ("curves", "connectivity"):
            path = out / f"{classifier}-{study}" / "sweep.nc"
            if path.exists():
                parts.setdefault(classifier, {})[study] = load(path)
    return parts

"""`efhc compare-methods`: the methods of the field, tuned and compared at equal costs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from efhc_jax.cli.flags import Folder, OptionalFolder
from efhc_jax.text.printing import print_text


@dataclass(frozen=True)
class CompareMethods:
    """Tune the methods of the field on separate seeds, and compare them with EF-HC at equal costs.

    The costs are bits, transmission time and gradient steps; differences are paired by seed. It can be
    stopped at any time; the same command resumes. `--preset quick` runs a small version on the included
    data.
    """

    out: Folder = Path("out/methods-compared")
    """Folder for the sweeps, the tables and the figure."""
    preset: Literal["full", "quick"] = "full"
    """Size: the paper's setting on the full data, or a small version."""
    model: Literal["svm", "lenet5"] = "svm"
    """Model that every device trains."""
    contenders: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME …")] = ()
    """Methods to compare with EF-HC; all by default."""
    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Number of seeds of the comparison; by default that of the preset."""
    data_dir: OptionalFolder = None
    """Folder with the files of the dataset."""

    def execute(self) -> None:
        """Tune, run, compare, and write the results."""
        from efhc_jax.cli.startup import notes, one_device_a_core, start_jax
        from efhc_jax.comparison.contenders import BASELINE, CONTENDERS, size_of
        from efhc_jax.comparison.figure import draw_comparison
        from efhc_jax.comparison.study import Study, accuracies, choose, compete, tune
        from efhc_jax.comparison.verdicts import as_json, as_markdown, rows_of
        from efhc_jax.data import load_dataset
        from efhc_jax.disk.files import written_whole
        from efhc_jax.errors import ExperimentError
        from efhc_jax.experiment.naming import check_choice
        from efhc_jax.plotting.figures import save_figure
        from efhc_jax.runs.interrupts import stop_requests

        if self.seeds is not None and self.seeds < 2:
            raise ExperimentError(f"seeds={self.seeds}: intervals need 2 or more")
        others = [check_choice("contenders", name, CONTENDERS) for name in self.contenders or CONTENDERS]
        size = size_of(self.model, self.preset, self.seeds)
        start_jax()
        one_device_a_core(runs=len(size.tuning_seeds) * len(size.learning_rates))
        with notes(), stop_requests() as should_stop:
            study = Study(
                self.model,
                size,
                list(dict.fromkeys([BASELINE, *others])),
                load_dataset(size.dataset, self.data_dir),
                self.out,
                should_stop,
                print_text,
            )
            try:
                tuned = tune(study)
                chosen = choose(study, tuned)
                runs = compete(study, chosen)
            except KeyboardInterrupt:
                print_text(f"Stopped. Run the same command again to resume from {self.out}")
                raise
        rows = rows_of(study, chosen, accuracies(study, chosen, runs))
        tables = as_markdown(study, rows)
        found = as_json(study, rows) | {
            "tuning": [{**one.candidate._asdict(), "accuracies": one.accuracies} for one in tuned]
        }
        print(tables)
        written = [save_figure(draw_comparison(study, chosen, runs), self.out / f"{self.model}.png")]
        for ending, text in (("md", tables), ("json", json.dumps(found, indent=1))):
            path = self.out / f"{self.model}.{ending}"
            with written_whole(path) as part:
                part.write_text(text, encoding="utf-8")
            written.append(path)
        for path in written:
            print_text(f"wrote {path}")

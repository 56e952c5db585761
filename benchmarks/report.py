"""Tables of the benchmarks, on the terminal and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table


class Verdict(NamedTuple):
    """A measured value and its target."""

    work: str
    what: str
    measured: float
    target: float | None  # None without a target
    at_least: bool = True
    percent: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is reached."""
        if self.target is None:
            return None
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def to_dict(self) -> dict[str, Any]:
        """The verdict for the JSON report."""
        return self._asdict() | {"met": self.met}


class Sheet(NamedTuple):
    """A table of text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def sheets(report: dict[str, Any]) -> list[Sheet]:
    """The tables of a suite's report."""
    made = {
        "peers": _peer_sheets,
        "scaling": _scaling_sheets,
        "methods": _method_sheets,
        "startup": _startup_sheets,
        "accelerators": _accelerator_sheets,
    }
    where = "an H100" if report["suite"] == "accelerators" else "2 CPU cores"
    judged = [_verdict_sheet(report["verdicts"], where)] if report["verdicts"] else []
    return [*made[report["suite"]](report), *judged]


def as_markdown(report: dict[str, Any]) -> str:
    """All tables in Markdown, with the machine and the date."""
    parts = [_origin(report)]
    for sheet in sheets(report):
        lines = [sheet.columns, ["---"] * len(sheet.columns), *sheet.rows]
        parts.append(f"**{sheet.title}**")
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def as_table(sheet: Sheet) -> Table:
    """A table for the terminal."""
    from rich.table import Table

    table = Table(title=sheet.title, title_justify="left")
    for position, column in enumerate(sheet.columns):
        words = position == 0 or column in ("metric", "verdict", "model", "set by", "axes")
        table.add_column(column, justify="left" if words else "right")
    for row in sheet.rows:
        table.add_row(*row)
    return table


def duration(seconds: float) -> str:
    """A time with a suitable unit.

    Example:
        >>> duration(0.0000123), duration(0.0123), duration(12.3)
        ('12.3 µs', '12.3 ms', '12.3 s')
    """
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * size * 0.9995:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _origin(report: dict[str, Any]) -> str:
    machines = report["machines"]
    where = machines[0]
    load = max(one["load_average"][0] for one in machines)
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    devices = " and ".join(dict.fromkeys(one["jax_devices"] for one in machines))
    return (
        f"Measured by `efhc bench --suite {report['suite']}{' --quick' * report['quick']}` on "
        f"{report['began']}: {where['processor']}, {where['cores']} cores, JAX on {devices}, "
        f"load average up to {load:.1f} while it was measured ({versions})."
    )


def _peer_sheets(report: dict[str, Any]) -> list[Sheet]:
    from benchmarks.suites.peers import PEERS

    columns = ["work", "ours", *PEERS.values(), "compiling ours", "largest difference, 64 bits"]
    rows = []
    for work in report["works"]:
        best = {name: timing["best"] for name, timing in work["timings"].items()}
        agreement = work["agreement"]
        agreed = f"{agreement['weights']:.1g} after {agreement['iterations']} iterations"
        if work["kind"] == "evaluation":
            agreed = "same accuracies"
        compiled = f"{work['compile_seconds']:.1f} s" if "compile_seconds" in work else ""
        name = f"{work['name']}, {work['images']:,} images" if "images" in work else work["name"]
        times = [duration(best[one]) if one in best else "" for one in ("ours", *PEERS)]
        rows.append([name, *times, compiled, agreed])
    title = "Time of an iteration of one run, or of an evaluation of all devices"
    return [Sheet(title, columns, rows), _limit_sheet(report["works"])]


def _limit_sheet(works: list[dict[str, Any]]) -> Sheet:
    columns = ["work", "ours", "CPU time", "pass", "in blocks", "MFLOP", "GFLOP/s", "best"]
    rows = []
    for work in works:
        timings = work["timings"]
        ours = timings["ours"]["best"]
        cpu = min(sample["cpu"] for sample in timings["ours"]["samples"])
        passes = [
            duration(timings[name]["best"]) if name in timings else ""
            for name in ("pass", "pass in blocks")
        ]
        rates = [work["flops"] / ours / 1e9, max(work["product_rates"].values()) / 1e9]
        counts = [f"{work['flops'] / 1e6:,.4g}", *(f"{rate:.3g}" for rate in rates)]
        rows.append([work["name"], duration(ours), duration(cpu), *passes, *counts])
    title = "Against the limits: a pass over W and Ŵ, and the best rate of matrix products"
    return Sheet(title, columns, rows)


def _scaling_sheets(report: dict[str, Any]) -> list[Sheet]:
    from benchmarks.suites.scaling import AXES

    columns = ["", "model", "time", "limit", "set by", "ratio", "memory", "compiling"]
    made = []
    for axis, title in AXES.items():
        rows = [
            [
                f"{point['x']:,}",
                point["model"],
                duration(point["timing"]["best"]),
                duration(point["limit"]),
                point["bound"],
                f"{point['timing']['best'] / point['limit']:.1f}",
                size_of(point["memory_bytes"]),
                f"{point['compile_seconds']:.1f} s",
            ]
            for point in sorted(report["points"], key=lambda point: point["model"], reverse=True)
            if point["axis"] == axis
        ]
        made.append(Sheet(f"An iteration of all runs against the {title}", [title, *columns[1:]], rows))
    if report["grid"]:
        grid = report["grid"]
        what = f"{grid['runs']} runs of {grid['iterations']:,} iterations"
        times = [duration(grid["seconds"]), duration(grid["compile_seconds"])]
        rows = [[what, *times, str(grid["programs"])]]
        columns = ["grid", "to run, evaluations included", "compiling", "programs for the steps"]
        made.append(Sheet("A whole sweep", columns, rows))
    return made


def _method_sheets(report: dict[str, Any]) -> list[Sheet]:
    from benchmarks.suites.methods import KINDS, ratio

    made = []
    for work in report["works"]:
        for kind in KINDS:
            shown = [one for one in work["variants"] if one["kind"] == kind]
            if not shown:
                continue
            rows = [
                [
                    one["name"],
                    duration(one["timing"]["best"]),
                    f"{ratio(work, one):.2f}",
                    str(one["arrays"]),
                    f"{ratio(work, one) / one['arrays']:.2f}",
                    size_of(one["memory_bytes"]),
                    f"{one['compile_seconds']:.1f} s",
                ]
                for one in shown
            ]
            against = f"× {shown[-1]['against']}"
            columns = [kind, "time", against, "arrays", "per array", "memory", "compiling"]
            made.append(Sheet(f"{work['name']}: an iteration of a run, by {kind}", columns, rows))
    rows = [
        [one["method"], str(one["runs"]), ", ".join(one["axes"]), str(one["programs"])]
        for one in report["programs"]
    ]
    columns = ["method", "runs", "axes", "programs for the steps"]
    return [*made, Sheet("Programs that a sweep compiles", columns, rows)]


def _accelerator_sheets(report: dict[str, Any]) -> list[Sheet]:
    programs = report["programs"]
    columns = [
        "program",
        "launches",
        "moved",
        "× least",
        "GFLOP",
        "modelled time",
        "temporaries",
        "peak memory",
        "outside fusions",
    ]
    made = []
    for target in dict.fromkeys(one["target"] for one in programs):
        rows = [
            [
                one["work"],
                f"{one['launches']:,.4g}",
                size_of(one["bytes"]),
                f"{one['bytes'] / one['least_bytes']:.2f}",
                f"{one['flops'] / 1e9:.3g}",
                _modelled(one),
                size_of(one["temporary_bytes"]),
                size_of(one["peak_bytes"]),
                _listed(one["outside_fusions"]),
            ]
            for one in programs
            if one["target"] == target
        ]
        title = f"{target}: compiled, not run; per iteration or evaluation of all runs"
        made.append(Sheet(title, columns, rows))
    rows = [
        [
            one["work"],
            one["target"],
            ", ".join(f"{kind} {size_of(size)}" for kind, size in one["collectives"].items()) or "none",
            _modelled(one),
        ]
        for one in programs
        if one["accelerators"] > 1
    ]
    if rows:
        columns = ["program", "on", "bytes of collectives per iteration", "modelled time"]
        made.append(Sheet("Several accelerators: what each exchanges", columns, rows))
    if report["measured"]:
        rows = [[one["work"], duration(one["seconds"])] for one in report["measured"]]
        made.append(Sheet("Measured here, per iteration or evaluation", ["program", "best"], rows))
    return made


def _modelled(program: dict[str, Any]) -> str:
    seconds = program["modelled_seconds"]
    return "–" if seconds is None else duration(seconds)


def _listed(counts: dict[str, float]) -> str:
    """The total, and the two most frequent kinds."""
    most = sorted(counts, key=lambda kind: -counts[kind])[:2]
    return f"{sum(counts.values()):.3g} ({', '.join(most)})" if most else "none"


def _startup_sheets(report: dict[str, Any]) -> list[Sheet]:
    rows = [
        [one["what"], duration(min(one["samples"])), ", ".join(duration(s) for s in one["samples"])]
        for one in report["starts"]
    ]
    return [Sheet("Starting", ["command", "best", "all"], rows)]


def _verdict_sheet(verdicts: list[dict[str, Any]], where: str) -> Sheet:
    rows = []
    for verdict in verdicts:
        show = (lambda x: f"{x:.1%}") if verdict["percent"] else (lambda x: f"{x:.3g}")
        sign = "at least" if verdict["at_least"] else "at most"
        target = "" if verdict["target"] is None else f"{sign} {show(verdict['target'])}"
        word = {True: "met", False: "not met", None: ""}[verdict["met"]]
        rows.append([verdict["work"], verdict["what"], show(verdict["measured"]), target, word])
    columns = ["work", "metric", "found", "target", "verdict"]
    return Sheet(f"Targets, set for {where}", columns, rows)


def size_of(count: float) -> str:
    """A number of bytes with a suitable unit."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"

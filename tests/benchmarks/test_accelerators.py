"""Programs for accelerators: what is counted in a text, and in what the compilers make of ours."""

import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from benchmarks import pictures, report
from benchmarks.accelerators import compilers
from benchmarks.accelerators.costs import launches, main_loop
from benchmarks.accelerators.hlo import parse
from benchmarks.accelerators.programs import counted, modelled
from benchmarks.accelerators.targets import A100, H100, TARGETS, V5E
from benchmarks.accelerators.workloads import Work, experiment_of
from benchmarks.suites import accelerators
from efhc_jax.cli import main
from efhc_jax.methods import METHODS

# Two models of 100 numbers, in a loop of 50 trips of two iterations: a copy of everything,
# an update in place of ten numbers, and a product of (2, 100) with (100, 3).
GEMM = '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'
TRIPS = '{"known_trip_count":{"n":"50"}}'
TEXT = f"""
HloModule jit_advance, is_scheduled=true

%fused_update (param_0: f32[2,100], param_1: f32[10], param_2: s32[]) -> f32[2,100] {{
  %param_0 = f32[2,100]{{1,0}} parameter(0)
  %param_1 = f32[10]{{0}} parameter(1)
  %row = f32[1,10]{{1,0}} bitcast(%param_1)
  %param_2 = s32[] parameter(2)
  ROOT %updated = f32[2,100]{{1,0}} dynamic-update-slice(%param_0, %row, %param_2, %param_2)
}}

%fused_slice (param_0: f32[2,100], param_1: s32[]) -> f32[10] {{
  %param_0 = f32[2,100]{{1,0}} parameter(0)
  %param_1 = s32[] parameter(1)
  %part = f32[1,10]{{1,0}} dynamic-slice(%param_0, %param_1, %param_1), dynamic_slice_sizes={{1,10}}
  ROOT %flat = f32[10]{{0}} bitcast(%part)
}}

%body (carry: (s32[], f32[2,100], f32[100,3])) -> (s32[], f32[2,100], f32[100,3]) {{
  %carry = (s32[], f32[2,100]{{1,0}}, /*index=2*/f32[100,3]{{1,0}}) parameter(0)
  %k = s32[] get-tuple-element(%carry), index=0
  %w = f32[2,100]{{1,0}} get-tuple-element(%carry), index=1
  %x = f32[100,3]{{1,0}} get-tuple-element(%carry), index=2
  %slice = f32[10]{{0}} fusion(%w, %k), kind=kLoop, calls=%fused_slice
  %update = f32[2,100]{{1,0}} fusion(%w, %slice, %k), kind=kLoop, calls=%fused_update
  %product = (f32[2,3]{{1,0}}, s8[4096]{{0}}) \
custom-call(%update, %x), custom_call_target="__cublas$gemm", \
backend_config={GEMM}
  %copied = f32[2,100]{{1,0}} copy(%update)
  ROOT %next = (s32[], f32[2,100]{{1,0}}, f32[100,3]{{1,0}}) tuple(%k, %copied, %x)
}}

%condition (carry: (s32[], f32[2,100], f32[100,3])) -> pred[] {{
  %carry.1 = (s32[], f32[2,100]{{1,0}}, f32[100,3]{{1,0}}) parameter(0)
  ROOT %more = pred[] constant(true)
}}

ENTRY %main (w0: f32[2,100], x0: f32[100,3]) -> f32[2,100] {{
  %w0 = f32[2,100]{{1,0}} parameter(0)
  %x0 = f32[100,3]{{1,0:S(1)}} parameter(1)
  %zero = s32[] constant(0)
  %begin = (s32[], f32[2,100]{{1,0}}, f32[100,3]{{1,0}}) tuple(%zero, %w0, %x0)
  %loop = (s32[], f32[2,100]{{1,0}}, f32[100,3]{{1,0}}) \
while(%begin), condition=%condition, \
body=%body, backend_config={TRIPS}
  ROOT %end = f32[2,100]{{1,0}} get-tuple-element(%loop), index=1
}}
"""


def test_bytes_are_those_that_an_operation_reads_and_writes():
    program = parse(TEXT)
    found = {one.name: one for one in launches(program)}
    assert {name: one.bytes for name, one in found.items()} == {
        "slice": 40 + 4 + 40,  # the slice, its position, the result; not the sliced array
        "update": 40 + 4 + 40,  # the row, the position, the row in place
        "product": 800 + 1200 + 24,  # without scratch memory
        "copied": 800 + 800,
    }
    assert {one.times for one in found.values()} == {50}
    assert [name for name, one in found.items() if one.is_copy] == ["copied"]
    assert found["product"].flops == 2 * 2 * 3 * 100
    assert found["product"].kind == "__cublas$gemm"


def test_counts_are_per_iteration():
    # W has as many bytes as one device with 200 parameters.
    found = counted(parse(TEXT), Work(devices=1), H100, 200)
    assert found["launches"] == 4 / 2
    assert found["bytes"] == (84 + 84 + 2024 + 1600) / 2
    assert found["least_bytes"] == 4 * 800
    assert found["copies_of_models"] == 1
    assert found["outside_fusions"] == {"__cublas$gemm": 0.5, "copy": 0.5}
    assert found["with_host"] == 0
    assert found["modelled_seconds"] == pytest.approx(2 * H100.launch)
    assert counted(parse(TEXT), Work(devices=1), H100, 200, arrays=3)["least_bytes"] == 6 * 800


def test_every_method_has_a_line_for_an_h100():
    works = [Work("svm", 64), *accelerators.METHODS]
    assert [work.method for work in works] == list(METHODS)
    assert len({work.name for work in works}) == len(works)
    assert works[1].name == "SVM, 64 runs, copies"
    assert accelerators.works_for(H100, works) == works
    assert accelerators.works_for(A100, works) == accelerators.works_for(V5E, works) == works[:1]
    assert [experiment_of(work).method for work in works] == list(METHODS)


def test_the_longest_of_launch_bytes_and_products_is_modelled():
    program = parse(TEXT)
    product = next(one for one in launches(program, main_loop(program)) if one.name == "product")
    assert modelled(product, H100) == H100.launch
    assert modelled(product._replace(bytes=3.35e12), H100) == pytest.approx(1)
    assert modelled(product._replace(flops=67e12), H100) == pytest.approx(1)
    exchange = product._replace(kind="all-gather-start", bytes=450e9)
    assert exchange.is_collective
    assert modelled(exchange, H100) == pytest.approx(1)


def test_operations_of_our_own_kernels_are_known():
    """A kernel of two models with 3 outputs and kernels of 25 weights, and 14 × 14 pooled points."""
    text = """
ENTRY %main (k: f32[2,3,25], b: f32[2,3], x: f32[1,32,32,128]) -> f32[2,3,14,14,128] {
  %k = f32[2,3,25]{2,1,0} parameter(0)
  %b = f32[2,3]{1,0} parameter(1)
  %x = f32[1,32,32,128]{3,2,1,0} parameter(2)
  ROOT %pooled = f32[2,3,14,14,128]{4,3,2,1,0} custom-call(%k, %b, %x), \
custom_call_target="__gpu$xla.gpu.triton", backend_config={ir = "ML", name = "NAME", num_warps = 2}
}
"""
    (found,) = launches(parse(text.replace("NAME", "pooled_convolution")))
    assert found.flops == 2 * 25 * 2 * 3 * 28 * 28 * 128
    assert found.bytes == 4 * (2 * 3 * 25 + 2 * 3 + 32 * 32 * 128 + 2 * 3 * 14 * 14 * 128)
    with pytest.raises(ValueError, match="unknown kernel other"):
        list(launches(parse(text.replace("NAME", "other"))))


def test_collectives_and_the_host_are_noticed():
    text = TEXT.replace("copy(%update)", "all-reduce(%update), to_apply=%condition")
    assert counted(parse(text), Work(devices=1), H100, 200)["collectives"] == {"all-reduce": 400}
    text = TEXT.replace("__cublas$gemm", "xla_ffi_python_gpu_callback")
    assert counted(parse(text), Work(devices=1), H100, 200)["with_host"] == 50


def test_arrays_kept_on_the_chip_move_no_memory():
    text = TEXT.replace("%x = f32[100,3]{1,0}", "%x = f32[100,3]{1,0:T(8,128)S(1)}")
    product = next(one for one in launches(parse(text)) if one.name == "product")
    assert product.bytes == 800 + 24


def test_the_report_judges_the_programs_of_an_h100(tmp_path):
    one = {
        "work": Work("svm", 64).name,
        **Work("svm", 64)._asdict(),
        "parameters": 7850,
        "compile_seconds": 1.0,
        "temporary_bytes": 10,
        "peak_bytes": 20,
        **counted(parse(TEXT), Work("svm", 64), H100, 7850),
    }
    names = [target.name for target in TARGETS]
    programs = [one | {"target": name, "launches": 7.0 + place} for place, name in enumerate(names)]
    found = accelerators.verdicts(programs)
    assert [(each.what, each.met) for each in found] == [("launches", True), ("traffic, × least", True)]
    found = accelerators.verdicts([one | {"target": "H100", "launches": 8.5}])
    assert [each.met for each in found] == [False, True]
    whole = {
        "suite": "accelerators",
        "quick": True,
        "began": "today",
        "versions": {},
        "machines": [{"processor": "none", "cores": 1, "jax_devices": "none", "load_average": [0.0]}],
        "programs": programs,
        "measured": [{"work": "SVM, 1 run", "seconds": 1e-5}],
        "verdicts": [each.to_dict() for each in found],
    }
    text = report.as_markdown(whole)
    assert re.search(r"\| SVM, 64 runs \| 7 \|", text)
    assert "compiled, not run" in text
    assert "Measured here" in text
    path = tmp_path / "drawn.png"
    pictures.draw(whole).savefig(path)
    assert path.stat().st_size > 10_000


def test_without_the_compilers_the_message_says_how_to_get_them(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(compilers, "FOLDER", tmp_path / "none")
    assert main(["bench", "--suite", "accelerators", "--out", str(tmp_path)]) == 2
    assert "run scripts/compilers" in capsys.readouterr().err


def test_works_are_measured_as_they_are_compiled():
    """On this machine's CPU, as it would be on a GPU."""
    work = Work("svm", runs=2)
    found = accelerators.measure_one(work, rounds=1)
    assert found["work"] == work.name
    assert 0 < found["seconds"] < 1
    assert accelerators.measure([work])["measured"] == [], "a CPU is no accelerator"


# The compilers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examined():
    """Programs examined in one process that has the compilers, each once."""
    found = {}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=compilers.use) as pool:

        def examine(work, target):
            from benchmarks.accelerators import programs

            if (work, target) not in found:
                found[work, target] = pool.submit(programs.examine, work, target).result()
            return found[work, target]

        yield examine


COMPILED = [
    (Work("svm", 1), H100),
    (Work("svm", 64), H100),
    (Work("svm", 64), A100),
    (Work("svm", 64), V5E),
    (Work("lenet5", 16), H100),
    (Work("lenet5", 16), A100),
    (Work("lenet5", 16, batch_size=32), H100),
    (Work("cnn", 1, devices=20, batch_size=32), H100),
    (Work("svm", 1, devices=1000), H100),
    *((work, H100) for work in accelerators.METHODS if work in accelerators.BOUNDS),
]
SHARED = [(Work("svm", 64, accelerators=8), target) for target in TARGETS]


@pytest.mark.compilers
class TestCompiled:
    @pytest.mark.parametrize(("work", "target"), COMPILED)
    def test_a_run_neither_calls_the_host_nor_copies_its_models(self, examined, work, target):
        found = examined(work, target)
        assert found["with_host"] == 0
        assert found["copies_of_models"] == 0
        assert found["launches"] > 0

    @pytest.mark.parametrize(("work", "target"), SHARED)
    def test_runs_on_several_accelerators_exchange_nothing(self, examined, work, target):
        found = examined(work, target)
        assert found["collectives"] == {}
        assert found["with_host"] == found["copies_of_models"] == 0

    def test_devices_on_several_accelerators_exchange_their_models(self, examined):
        work = Work("svm", 1, devices=10_000, accelerators=8, by_rows=True)
        models = work.devices * 7850 * 4
        found = examined(work, H100)
        gathered = sum(size for kind, size in found["collectives"].items() if "gather" in kind)
        assert models <= gathered <= 1.1 * models

    @pytest.mark.parametrize("work", accelerators.BOUNDS)
    def test_programs_of_an_h100_stay_within_their_bounds(self, examined, work):
        judged = accelerators.verdicts([examined(work, H100)])
        assert judged
        for verdict in judged:
            assert verdict.met, verdict

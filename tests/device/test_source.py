"""The text that is compiled: headers put together, signatures, choices, launch shapes."""

import os
import re
import shutil

import numpy as np
import pytest

from hiresx import kernels
from hiresx.device import Configuration, source
from hiresx.device.configuration import FOLDERS, parts
from hiresx.device.wrappers import BLOCK, BLOCK_THREADS, EXPORTED, even_shape, generate, generate_part, launch_shape
from hiresx.errors import HiresxError

pytestmark = pytest.mark.usefixtures("environment")


def test_choices_lists_headers(root):
    assert kernels.choices("positivity", root) == ["fallback", "limiter"]
    assert kernels.choices("nowhere", root) == []


def test_flatten_includes_once_and_keeps_places(root):
    text = kernels.flatten('first\n#include "solver.h"\nlast\n#include "arithmetic.h"\n', root)
    assert text.count("typedef double real") == 1
    assert '#include "' not in text and "#include <cstring>" in text
    assert "#pragma once" not in text
    lines = text.splitlines()
    assert lines[lines.index("last") - 1] == '#line 3 "generated"'
    assert '#line 1 "kernels/deep/constant.h"' in lines


def test_flatten_names_the_place_of_a_missing_header(root):
    with pytest.raises(FileNotFoundError, match=r'generated:2: no kernel header "absent.h"'):
        kernels.flatten('\n#include "absent.h"\n', root)


def test_signatures(root):
    declared = kernels.declarations(kernels.flatten('#include "solver.h"\n', root))
    found = {signature.name: signature for signature, _ in declared}
    assert set(found) == {"update", "every_type", "twice", "set", "shift", "unlimited_only", "total", "squares"}
    assert found["update"].arguments == (
        ("int", "o"),
        ("int", "sj"),
        ("int", "sk"),
        ("const real *", "q0"),
        ("real *", "q"),
        ("real", "a"),
    )
    assert "const real *__restrict__ q0" in found["update"].parameters
    assert [found[name].kind for name in ("update", "twice", "total")] == ["KERNEL", "VECTOR_KERNEL", "CPU_KERNEL"]
    assert found["total"].arguments[1] == ("long long", "n")
    shift = found["shift"]
    assert shift.arguments[-2:] == (("const real *", "by"), ("real *", "a")) and shift.holds == {"by": 1, "a": 1}
    assert shift.optional == {"by"} and not found["update"].optional
    assert found["squares"].shared and not found["total"].shared and found["squares"].arguments[1] == ("int", "n")


def test_a_field_of_no_variables_is_no_argument():
    """The body gets a null pointer for it, wherever the kernel is compiled."""
    text = "#define HX_MORE {}\nKERNEL(a, int i, int j, int k, field<1> x, const_field<HX_MORE> y, int n) {{}}\n"
    (none, _), (two, _) = (kernels.declarations(text.format(count))[0] for count in (0, 2))
    assert none.arguments == (("real *", "x"), ("int", "n")) and none.passed == ("x", "nullptr", "n")
    assert none.parameters == "field<1> x, int n" and none.holds == {"x": 1}
    assert [name for _, name in two.arguments] == ["x", "y", "n"] and two.holds == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("KERNEL(a, int i, int j) {}", "must take int i, int j, int k first"),
        ("KERNEL(a, int i, int j, int k, float x) {}", 'cannot take "float x"'),
        ("KERNEL(a, int i, int j, int k, const real **x) {}", 'cannot take "const real \\*\\*x"'),
        ("KERNEL(a, int i, int j, int k, optional<int> x) {}", 'cannot take "optional<int> x"'),
        ("KERNEL(a, int i, int j, int k, field<six> x) {}", 'kernel a: the size "six" of a field is not known here'),
        ("KERNEL(a, int i, int j, int k, const int *from) {}", "its name no keyword of Python"),
        ("KERNEL(a, int i, int j, int k) {", "braces do not balance"),
        ("KERNEL(a, int i, int j, int k) {}\nCPU_KERNEL(a, int n) {}", "declared twice"),
    ],
)
def test_signatures_refuse(text, message):
    with pytest.raises(ValueError, match=message):
        kernels.declarations(text)


def test_source_defines_what_is_chosen():
    text = source(Configuration(precision="fp32", positivity="limiter", interpolation="original"), "cpu")
    for line in ("HX_FP32", "HX_LIMITER 1", "HX_GHOST_LAYERS 3", "HX_GAMMA (1.4)", "HX_EPSILON (1e-06)"):
        assert f"#define {line}\n" in text
    order = re.findall(r'#include "(.*)"', text)
    others = [f"{folder}/{name}.h" for folder in ("boundary", "terms") for name in kernels.choices(folder)]
    last = order.index("solver.h")
    assert order[:4] == ["arithmetic.h", "storage.h", "equations.h", "gas.h"] and order[last + 1 :] == others
    assert "flux/steger_warming.h" in order
    assert "HX_INTERPOLATES_NODES" not in text and "HX_INTERPOLATES_NODES" in source(Configuration(), "cpu")
    assert "HX_FP32" not in source(Configuration(), "cpu")
    assert re.findall(r'#include "(.*)"', source(Configuration(), "emulated"))[0] == "shim.h"


@pytest.mark.parametrize("folder", FOLDERS)
def test_unknown_choice_names_the_nearest(folder):
    known = kernels.choices(folder)[0]
    with pytest.raises(HiresxError, match=f'no {folder} .*"{known}x"') as caught:
        source(Configuration(**{folder: known + "x"}), "cpu")
    assert f'did you mean "{known}"' in caught.value.hint


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (Configuration(viscosity="sutherlan"), 'no viscosity is called "sutherlan"'),
        (Configuration(viscosity="power", viscosity_parameters=(("exponnet", 1.0),)), '"exponnet"'),
    ],
)
def test_an_unknown_viscosity_law_or_parameter_is_an_error(configuration, expected):
    with pytest.raises(HiresxError, match=expected) as caught:
        source(configuration, "cpu")
    assert "did you mean" in caught.value.hint


def test_cuda_and_emulated_text_differ_by_shim_and_launchers(root):
    emulated, _ = generate(Configuration(), "emulated", root)
    cuda, found = generate(Configuration(), "cuda", root)
    without = re.sub(r' extern "C" hx_shape \w+_shape\(.*', "", emulated)
    # behind the first real header the texts are the same, but for which header follows which line of the main text
    mark = '#line 1 "kernels/arithmetic.h"'
    strip = re.compile(r'#line \d+ "generated"')
    # a kernel for CUDA is found by its name, an emulated one is called by its launcher alone
    found_by_name = f"{EXPORTED}__global__"
    assert cuda.count(found_by_name) == len(found) and found_by_name not in emulated
    assert strip.sub("", without.split(mark)[1]) == strip.sub("", cuda.split(mark)[1]).replace(EXPORTED + "_", "_")
    assert "total" not in found and "blockIdx" not in cuda.split(mark)[0]


@pytest.mark.parametrize(
    "extent", [(1, 1, 1), (5000, 1, 1), (3, 70, 70), (1, 3, 900), (64, 64, 64), (100, 1, 7), (2, 2, 2), (1, 1000, 1)]
)
def test_launch_shape_covers_the_range(extent):
    for wanted in (BLOCK, (128, 1, 1), (16, 4, 4)):
        grid, block = launch_shape(*extent, wanted)
        assert np.prod(block) <= np.prod(wanted) <= BLOCK_THREADS and block[2] <= 64
        for n, g, b in zip(extent, grid, block, strict=True):
            assert (g - 1) * b < n <= g * b
        grid, block = even_shape(*extent, wanted)
        assert np.prod(block) <= np.prod(wanted) and block[0] <= wanted[0] and block[2] <= 64
        for n, g, b in zip(extent, grid, block, strict=True):
            assert (g - 1) * b < n <= g * b
        assert grid[0] * block[0] < extent[0] + grid[0]  # fewer than one thread a block is idle
    assert launch_shape(300, 300, 300, wanted)[1] == wanted


ALL_SORTS = {
    "as ever": {},
    "viscous": {"viscosity": "sutherland", "prandtl": 0.7},
    "scalars": {"viscosity": "constant", "schmidt": (0.7, 1.0), "interpolation": "original"},
    "differences": {"precision": "differences", "reference": (1.0, 0.0, 0.0, 0.0, 1.8), "viscosity": "power"},
}


@pytest.mark.parametrize("target", ["cpu", "emulated"])
@pytest.mark.parametrize("sort", ALL_SORTS)
def test_parts_are_the_whole(target, sort):
    """Every kernel of the solver stands in one of the parts, as it does in the whole."""
    chosen = Configuration(**ALL_SORTS[sort])
    made = [generate_part(chosen, target, part)[1] for part in parts(chosen)]
    names = [name for found in made for name in found]
    assert len(names) == len({*names}) and all(made)
    assert {name: found[name] for found in made for name in found} == generate(chosen, target)[1]


def texts(**choices) -> dict[str, str]:
    """The text of every part, by part."""
    chosen = Configuration(**{"viscosity": "sutherland", "schmidt": (0.7,)} | choices)
    return {part: generate_part(chosen, "cpu", part)[0] for part in parts(chosen)}


def test_a_part_is_the_same_for_what_it_does_not_depend_on():
    """So that it is compiled once: the first for every viscosity, all but those of the scheme for every flux, weights
    and space, and what knows of no diffusion for every fluid."""
    usual, of_scheme = texts(), {"scheme", "wall_edges"}
    viscous = {"every_scheme", "scalar_boundary", "statistics", "boundary/no_slip", "boundary/reflect"}
    changes = {"flux": "roe", "weights": "z", "space": "component", "epsilon": 1e-5, "flux_smoothing": 0.1}
    changed = {
        name: {part for part, text in texts(**{name: value}).items() if text != usual[part]}
        for name, value in changes.items()
    }
    assert changed == dict.fromkeys(changes, of_scheme)
    for change in ({"viscosity": "power"}, {"prandtl": 0.7}, {"turbulence": "wale", "eddy_constant": 0.3}):
        unlike = {part for part, text in texts(**change).items() if text != usual[part]}
        assert unlike & viscous and not unlike & of_scheme, change
        assert not unlike & {"boundary/outflow", "boundary/patched", "signals", "filter", "spatial_filter"}, change
    for change in ({"gamma": 1.3}, {"positivity": "none"}, {"precision": "fp32"}):
        assert all(text != usual[part] for part, text in texts(**change).items()), change


def test_the_blocks_of_the_implicit_integrator_do_not_depend_on_what_interpolates():
    """They are those of first order: one compilation for all weights and spaces."""

    def text(**choices) -> str:
        return generate(Configuration(**({"program": "implicit", "viscosity": "sutherland"} | choices)), "cpu")[0]

    for change in ({"weights": "z"}, {"space": "component"}, {"interpolation": "original"}, {"epsilon": 1e-5}):
        assert text(**change) == text(), change
    for change in ({"flux": "roe"}, {"viscosity": "none"}, {"positivity": "none"}, {"gamma": 1.3}):
        assert text(**change) != text(), change


def test_a_condition_that_computes_fluxes_says_so(tmp_path):
    root = tmp_path / "kernels"
    shutil.copytree(kernels.ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    kernel = "KERNEL(wall_flux, int i, int j, int k, const_state_field<gas_variables> q) {}\n"
    for text, part in ((kernel, "boundary/wall_flux"), ('#include "../scheme.h"\n' + kernel, "scheme")):
        (root / "boundary/wall_flux.h").write_text(text)
        made = {p: generate_part(Configuration(), "cpu", p, root)[1] for p in parts(Configuration(), root)}
        assert [p for p, found in made.items() if "wall_flux" in found] == [part]


def test_a_text_is_made_anew_where_a_header_changed(tmp_path):
    root, day = tmp_path / "kernels", 10**9 * 86400
    shutil.copytree(kernels.ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    header = root / "boundary/reflect.h"
    text = header.read_text()

    def made(word: str, age: int) -> str:
        header.write_text(f"// {word}\n{text}")
        for path in root.rglob("*.h"):
            os.utime(path, ns=(age, age) if path == header else (day, day))
        return generate_part(Configuration(), "cpu", "boundary/reflect", root)[0]

    assert made("one", day) is made("one", day)
    # of another time, another size, and too young for the time to tell
    assert "// two" in made("two", 2 * day) and "// three" in made("three", 2 * day)
    header.write_text(f"// four\n{text}")
    assert "// four" in generate_part(Configuration(), "cpu", "boundary/reflect", root)[0]
    now = header.stat().st_mtime_ns
    header.write_text(f"// five\n{text}")
    os.utime(header, ns=(now, now))
    assert "// five" in generate_part(Configuration(), "cpu", "boundary/reflect", root)[0]


def test_a_part_without_packs_does_not_read_them():
    found = texts()
    assert "#define HX_POINTS" in found["boundary/outflow"] and "#define HX_POINTS" not in found["statistics"]


def test_launch_shape_of_nothing():
    assert launch_shape(4, 0, 3)[0] == even_shape(4, 0, 3, BLOCK)[0] == (0, 0, 0)
    assert launch_shape(-1, -1, 3)[0] == (0, 0, 0)

"""README's "Where do I add...": what a row says is all that has to be done, done in a copy of the sources."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT
from ranks import ENVIRONMENT, launcher

README = (ROOT / "README.md").read_text()
LESS_OPTIMISED = ROOT / "tests/added/less_optimised"
ROOMS = ("hiresx", "kernels", "topology", "cases")

CASE = '''
title = "Shear between two walls, the lower one at rest"
description = """
Shear between two walls. Lengths are over the edge of the unit cube. A second on one core.

    hiresx run two-walls
"""
[gas]
reynolds = 1.0
viscosity = { law = "exponential", rate = 0.3 }
[grid]
generator = "halved"
n = [9, 17, 1]
[scheme]
flux = "central"
weights = "even"
interpolation = "alike"
positivity = "lenient"
[time]
steps = 2
integrator = "heun_rk2"
[initial]
function = "initial"
[[boundary]]
faces = ["imin", "imax"]
type = "repeated"
[[boundary]]
faces = ["jmin"]
type = "no-slip-wall"
temperature = 2.0
[[boundary]]
faces = ["jmax"]
type = "no-slip-wall"
temperature = 2.0
velocity = [0.1, 0.0, 0.0]
[output]
variables = ["rho", "twice_rho"]
formats = ["netcdf", "listing"]
[[force]]
name = "below"
faces = ["jmin"]
every = 1
[mass]
every = 1
'''

LAW = '''class ExponentialViscosity(ViscosityLaw):
    """Of exponential growth."""

    law: Literal["exponential"] = "exponential"
    rate: float = Field(0.5, description="growth with temperature")
    double: float = Field(1.0, description="a word of C++")
    formula = "where(T < 0.01, minimum(T, 1), double * exp(rate * (T - 1)))"
'''

# Row of the table: what is put into which file, ahead of a line of it or at its END; "" makes the file.
END = "its end"
ADDED = {
    "case": {
        "cases/two-walls/case.toml": ("", CASE),
        "cases/two-walls/case.py": ("", "def initial(x, y, z):\n    return 0.5, 0.2 * y, 0.0, 0.0, 1 / 1.4\n"),
    },
    "numerical flux": {
        "kernels/flux/central.h": (
            "",
            "template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {\n"
            "    T left[gas_variables], right[gas_variables];\n"
            "    flux_of(ql, primitive(ql), m, left);\n"
            "    flux_of(qr, primitive(qr), m, right);\n"
            "    for (int v = 0; v < gas_variables; ++v) f[v] = real(0.5) * (left[v] + right[v]);\n"
            "}\n",
        )
    },
    "weights, interpolation, positivity": {
        "kernels/weights/even.h": (
            "",
            "template <int stencils, int differences, class T>\n"
            "HD void nonlinear_weights(const T *, const T *, T, T *a) {\n"
            "    for (int k = 0; k < stencils; ++k) a[k] = T(real(1));\n"
            "}\n",
        ),
        "kernels/interpolation/alike.h": ("", (ROOT / "kernels/interpolation/original.h").read_text()),
        "kernels/interpolation/seventh.h": ("", (ROOT / "tests/added/seventh.h").read_text()),
        "kernels/positivity/capped.h": ("", (ROOT / "kernels/positivity/limiter.h").read_text()),
        "kernels/positivity/lenient.h": (
            "",
            (ROOT / "kernels/positivity/fallback.h")
            .read_text()
            .replace('#include "admissible.h"', (ROOT / "kernels/admissible.h").read_text())
            .replace("real(1.0 / 5)", "real(1.0 / 9)"),
        ),
    },
    "viscosity law": {"hiresx/case/viscosity.py": (END, "\n\n" + LAW)},
    "boundary condition": {
        "hiresx/case/boundaries.py": (
            END,
            '\n\nclass Repeated(Condition):\n    """The last node again."""\n\n    kernel = "repeat"\n'
            '    type: Literal["repeated"] = "repeated"\n',
        ),
        "kernels/boundary/repeat.h": (
            "",
            "KERNEL(repeat, int i, int j, int k, int o, int s1, int s2, int sn, long long sv, real *q) {\n"
            "    for (int v = 0; v < gas_variables; ++v)\n"
            "        for (int l = 1; l <= ghost_layers; ++l) {\n"
            "            const long long p = v * sv + o + (long long)i * s1 + (long long)j * s2;\n"
            "            q[p - (long long)l * sn] = q[p];\n"
            "        }\n"
            "}\n",
        ),
        "hiresx/rhs/boundary.py": (
            "class Reflect(FaceCondition)",
            'class Repeat(FaceCondition):\n    kernel = "repeat"\n\n    def ghost(self) -> None:\n'
            '        self._launch("repeat", self._box, **self._face, q=self.state.q)\n\n\n',
        ),
    },
    "term of a stage": {
        **{
            f"{folder}/terms/{name}": ("", (ROOT / "tests/added" / name).read_text())
            for folder, suffix in (("hiresx/rhs", "py"), ("kernels", "h"))
            for name in (f"pull.{suffix}", f"decay.{suffix}")
        },
        "hiresx/case/schema.py": [
            (
                "class Case(Table)",
                'class Pull(Table):\n    """The same acceleration everywhere."""\n\n'
                '    acceleration: Annotated[tuple[float, float, float], Listed] = Field(description="x, y, z")\n\n'
                '    def needed_fields(self, case: Any) -> Mapping[str, int]:\n        return {"pulled": 1}\n\n\n'
                'class Decay(Table):\n    """Of passive scalars."""\n\n'
                '    rate: float = Field(description="share that goes in a unit of time")\n\n\n',
            ),
            (
                "    average: Average | None",
                '    pull: Pull | None = Field(None, description="body force")\n'
                '    decay: Decay | None = Field(None, description="source of scalars")\n',
            ),
        ],
    },
    "field that the fluxes read, such as a sensor": {
        "kernels/flux/hybrid.h": ("", (ROOT / "tests/added/hybrid.h").read_text()),
        "hiresx/rhs/terms/shocks.py": ("", (ROOT / "tests/added/shocks.py").read_text()),
        "kernels/terms/shocks.h": ("", (ROOT / "tests/added/shocks.h").read_text()),
    },
    "field kept at every node": {
        "hiresx/device/fields.py": (
            "    # 1/y of axisymmetric flow",
            '    Field("mark", "stored", 1, restarts=True, halo="state", shown="a mark on the gas"),\n'
            '    Field("pulled", "work", 2, optional=True),\n',
        )
    },
    "time integrator": {
        "hiresx/time/integrators/heun_rk2.py": (
            "",
            "from hiresx.time.explicit import Explicit\n\n\n"
            "class HeunRk2(Explicit):\n"
            "    order, registers, keeps_start, convex = 2, 1, True, True\n"
            "    cfl, viscous_cfl = 0.1168, 0.794\n"
            "    times = (1.0, 1.0)\n\n"
            "    def updates(self, program, s):\n"
            "        fields = dict(sv=s.variable_stride, q0=s.q0, q=s.q, r=s.r, jacobian=s.jacobian, **s.place)\n"
            "        fields |= dict(dt=s.dt, dt_stride=s.dt_stride)\n"
            "        weights = ((0.0, 1.0, 1), (0.5, 0.5, 0))\n"
            "        return [program.call('update', s.size, **fields, a=a, b=b, first=n) for a, b, n in weights]\n",
        ),
        "hiresx/time/integrators/implicit_euler.py": ("", (ROOT / "tests/added/implicit_euler.py").read_text()),
        "hiresx/time/integrators/two_step_bdf.py": ("", (ROOT / "tests/added/two_step_bdf.py").read_text()),
    },
    "grid generator": {
        "hiresx/grid/generators/halved.py": (
            "",
            "import numpy as np\n"
            "from hiresx.grid.blocks import Block\n"
            "from hiresx.grid.connections import Grid\n\n\n"
            "def generate(spec) -> Grid:\n"
            "    lines = [np.arange(n) / max(n - 1, 1) / 2 for n in reversed(spec.n)]\n"
            "    z, y, x = np.meshgrid(*lines, indexing='ij')\n"
            "    return Grid((Block('halved', x, y, z),))\n",
        ),
        "hiresx/case/grids.py": (
            END,
            '\n\nclass Halved(Generator):\n    """Half the unit cube."""\n\n'
            '    generator: Literal["halved"] = "halved"\n'
            '    n: Counts = Field(description="nodes")\n',
        ),
    },
    "format of grid files": {
        "hiresx/grid/counted_file.py": (
            "",
            "import numpy as np\n"
            "from hiresx.grid.blocks import Block\n\n\n"
            "def read(path):\n"
            "    lines = [np.arange(int(n), dtype=float) for n in reversed(path.read_text().split()[1:])]\n"
            "    z, y, x = np.meshgrid(*lines, indexing='ij')\n"
            "    return Block('counted', x, y, z)\n",
        ),
        "hiresx/grid/from_file.py": (
            "    blocks = raw_blocks(path)",
            "    if path.read_bytes().startswith(b'counted'):\n"
            "        from hiresx.grid import counted_file\n\n"
            "        return Grid((counted_file.read(path),)), False, []\n",
        ),
    },
    "output format": {
        "hiresx/output/fields/formats/listing.py": (
            "",
            "from pathlib import Path\n\n\n"
            "def frame(directory, step, name='fields'):\n    return Path(directory) / f'{name}_{step:06d}.list'\n\n\n"
            "def clear(directory, name='fields', after=-1):\n"
            "    for path in Path(directory).glob(f'{name}_*.list'):\n"
            "        if int(path.stem.rpartition('_')[2]) > after:\n            path.unlink()\n\n\n"
            "class Format:\n"
            "    def __init__(self, about, directory, time, step):\n"
            "        self.path, self.lines = frame(directory, step, about.name), []\n\n"
            "    def __enter__(self):\n        return self\n\n"
            "    def __exit__(self, *_):\n        pass\n\n"
            "    def put(self, n, regions):\n"
            "        self.lines += [f'{n} {region.values[\"rho\"].size}' for region in regions]\n\n"
            "    def publish(self):\n        self.path.write_text('\\n'.join(self.lines))\n\n"
            "    def discard(self):\n        self.path.unlink(missing_ok=True)\n",
        )
    },
    "verification check": {
        "hiresx/verify/groups/halves.py": (
            "",
            '"""Halves: what is asked of them."""\n\n'
            "from hiresx.verify.checks import Check, at_most\n\n"
            "LONG = False\nCHECKS = [Check('a half', at_most(0.5), lambda bench: 0.5)]\n",
        )
    },
    "batch system": {
        "hiresx/launch/lsf.py": (
            "",
            "from hiresx.launch.batch_script import Batch, body\n\n\n"
            "def script(batch: Batch, file: str) -> str:\n"
            "    head = ['#!/bin/bash', f'#BSUB -n {batch.size}']\n"
            "    return '\\n'.join([*head, *body(batch, 'LSB_JOBINDEX'), 'mpirun \"${run[@]}\"']) + '\\n'\n",
        ),
        "hiresx/cli/launch.py": [
            (
                "    pbs: Annotated[",
                "    lsf: Annotated[Path | None, option('--lsf', None, 'Write a script for LSF.')] = None\n",
            ),
            ("        wanted = self.slurm is not None", "        if self.lsf is not None:\n            return True\n"),
            (
                "    if (pbs := script.pbs) is not None:\n",
                "    if script.lsf is not None:\n"
                "        from hiresx.launch.lsf import script as lsf_script\n\n"
                "        written.append((script.lsf, lsf_script(made, str(script.lsf)), 'bsub'))\n",
            ),
        ],
    },
    "analysis of runs": {
        "hiresx/post/heaviest.py": (
            "",
            "from hiresx.post.result import Result, as_run, dataset\n\n\n"
            "def heaviest(run):\n"
            "    rho = as_run(run).history('mass')['mean']\n"
            "    data = dataset({'mean': ('time', rho.values, 'mean density', 'rho_ref')}, {})\n"
            "    return Result('heaviest', {'greatest': float(rho.max())}, data, lambda: None)\n",
        ),
        "hiresx/post/__init__.py": [
            ("from hiresx.post.isosurface import", "from hiresx.post.heaviest import heaviest\n"),
            ('    "isosurface",\n', '    "heaviest",\n'),
        ],
        "hiresx/cli/post.py": (
            '@_analysis("profile")\n',
            "@_analysis(\"heaviest\")\ndef heaviest(run: Folder) -> Any:\n    'Largest mean density.'\n\n\n",
        ),
    },
    "command": {
        "hiresx/cli/greet.py": ("", "def greet() -> int:\n    print('good morning')\n    return 0\n"),
        "hiresx/cli/app.py": [
            ("    history,\n", "    greet,\n"),
            ('    "history": history.history,\n', '    "greet": greet.greet,\n'),
        ],
    },
    "derived variable": {
        "hiresx/output/fields/derived.py": (
            '    "T": Variable(',
            '    "twice_rho": Variable(lambda f: 2 * f["rho"], "twice the density", "rho_ref", "2r"),\n',
        )
    },
    "monitor ([how](docs/monitor.md))": {
        "hiresx/output/watch/monitors/mass.py": (
            "",
            "from hiresx.output.watch.history import Column\n"
            "from hiresx.output.watch.sampling import Monitor\n\n\n"
            "def build(case, simulation):\n"
            "    return [] if case.mass is None else [Mass(case.mass, simulation.solver, simulation.out)]\n\n\n"
            "class Mass(Monitor):\n"
            "    def __init__(self, spec, solver, out):\n"
            "        columns = [Column('mean', 'mean density', 'rho_ref')]\n"
            "        super().__init__(solver.comm, 'mass', 'mass', columns, spec.every, spec.every_time, out)\n\n"
            "    def measure(self, solver):\n"
            "        rho = [solver.backend.to_host(state.interior(state.q))[0] for state in solver.states]\n"
            "        total = solver.comm.sum(sum(float(r.sum()) for r in rho))\n"
            "        return {'mean': total / solver.decomposition.points}\n",
        ),
        "hiresx/case/monitors.py": (
            "class Average(SampledTable)",
            'class Mass(SampledTable):\n    """Mean density."""\n\n\n',
        ),
        "hiresx/case/schema.py": (
            "    average: Average | None",
            '    mass: Mass | None = Field(None, description="mean density")\n',
        ),
    },
}

# Rows that are not done here: why.
NOT_DONE = {
    "eddy-viscosity model": "four are there, each looked at by tests/device/test_eddy_viscosity_numpy.py",
    "length of detached-eddy simulation": "two are there, looked at by tests/device/test_detached_eddies_numpy.py",
    "sensor of shocks": "five are there, each looked at by tests/device/test_split_numpy.py",
    "conserved variable": "passive scalars are one: tests/rhs/test_scalars.py",
    "source of machine topology, placement strategy": "topology/ stands beside the house and has tests of its own",
    "transport of halos": "wants several ranks: tests/exchange",
}

# In the copy: the case from both entrances, and what it must give with mu(T = 2) = exp(0.3).
USED = """
import json, sys
from pathlib import Path
import netCDF4
import numpy as np
import case_file
from hiresx import Simulation, load, post
from hiresx.cli import execute
from hiresx.grid import from_file
from hiresx.output.fields import field_file as fields
from hiresx.output.watch import history
from hiresx.estimate import estimate
from hiresx.verify import runner
from hiresx.verify.groups import kernels as kernel_group

assert execute(["run", "two-walls", "--out", "out", "--backend", "cpu"]) == 0
assert execute(["post", "heaviest", "out", "--out", "found.csv"]) == 0 and execute(["greet"]) == 0
assert execute(["launch", "--lsf", "job.sh", "-n", "2", "two-walls"]) == 0
open("grid.counted", "w").write("counted 9 8 7")
(counted,) = from_file.read_grid(Path("grid.counted"), None).blocks
below, mass = history.read("out/history/below.nc").data, history.read("out/history/mass.nc").data
case = load("two-walls")
simulation = Simulation(case, backend="cpu")
with netCDF4.Dataset(list(fields.frames("out").values())[-1]) as file:
    group = file if "rho" in file.variables else next(iter(file.groups.values()))
    twice = float(np.max(np.abs(group["twice_rho"][...] - 2 * group["rho"][...])))
print(json.dumps({
    "file": sys.modules["hiresx"].__file__,
    "friction": float(below["friction_x"][0]),
    "dt": simulation.solver.choose_dt(), "planned": estimate(case)["dt"],
    "mean": float(mass["mean"][0]), "samples": len(mass["mean"]), "twice": twice,
    "greatest": float(mass["mean"].max()),
    "page": [word in case_file.page(case_file.MARK) for word in (
        "exp(rate * (T - 1))", '"repeated"', '"halved"', "`[mass]`", '"heun_rk2"'
    )],
    "listed": Path("out/fields_000002.list").read_text(), "check": runner.run(["halves"], "cpu", None)[0]["pass"],
    "analysed": Path("found.csv").read_text().split(), "script": Path("job.sh").read_text(),
    "counted": counted.size, "sets": [*kernel_group.SETS], "called": post.heaviest("out").summary["greatest"],
    "integrator": estimate(case)["integrator"], "stages": simulation.solver.integrator.stages,
}))
"""


def rows() -> dict[str, str]:
    """The table, by what is added."""
    table = README.split("## Where do I add...")[1].split("\n\n")[2]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {first: " ".join(rest) for first, *rest in cells}


def test_every_row_is_done_or_said_why_not():
    assert rows().keys() == ADDED.keys() | NOT_DONE.keys()


def test_the_files_that_the_table_names_are_there():
    names = {word for row in rows().values() for word in re.findall(r"`([\w./-]+)`", row) if "/" in word}
    assert len(names) > 15 and [name for name in sorted(names) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("what", ADDED)
def test_the_table_names_every_file_that_is_touched(what):
    row = rows()[what]
    for file in ADDED[what]:
        path = Path(file)
        named = re.sub(r"<\w+>", "*", row)
        there = any(path.match(word) for word in re.findall(r"`([^`]+)`", named) if "/" in word or "." in word)
        # a folder stands for the files in it, a second name for one beside the first
        assert there or f"`{path.name}`" in row or f"`{path.parts[0]}/`" in row, f"{file} is not in: {row}"


def _add(path, before, text):
    path.parent.mkdir(exist_ok=True)
    assert path.exists() == bool(before), path
    content = path.read_text() if before else ""
    assert content.count(before) == 1 or before in ("", END), f"{path}: {before}"
    path.write_text(content + text if before in ("", END) else content.replace(before, text + before))


def _put(tmp_path, rows):
    """A copy of the sources with what these rows add."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    for row in rows:
        for file, added in ADDED[row].items():
            for before, text in added if isinstance(added, list) else [added]:
                _add(tmp_path / file, before, text)


def _in_a_copy(rows, script, device, ranks, tmp_path):
    """tests/added/<script> in a copy with these rows, on so many ranks."""
    _put(tmp_path, rows)
    command = [sys.executable, str(ROOT / "tests/added" / script), device, "out"]
    if ranks > 1:
        if not launcher():
            pytest.skip("no mpi4py with an mpirun of its MPI")
        command = [*launcher(), "-n", str(ranks), *command]
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(tmp_path)}
    if rows != ("time integrator",):  # whose kernels are those of the other tests
        environment["CXX"] = str(LESS_OPTIMISED)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_a_copy_with_one_more_of_everything_works(tmp_path):
    _put(tmp_path, ADDED)
    # the one import that a key of Case needs
    schema = tmp_path / "hiresx/case/schema.py"
    schema.write_text(schema.read_text().replace("    KineticEnergy,\n", "    KineticEnergy,\n    Mass,\n"))
    beside = os.pathsep.join((str(tmp_path), str(ROOT / "docs" / "make")))
    environment = os.environ | {"PYTHONPATH": beside, "CXX": str(LESS_OPTIMISED)}
    done = subprocess.run([sys.executable, "-c", USED], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert Path(found["file"]).is_relative_to(tmp_path)
    # mu du/dy / Re over a length of 1/2
    assert found["friction"] == pytest.approx(2.718281828459045**0.3 * 0.2 * 0.5, rel=1e-10)
    assert found["planned"] == pytest.approx(found["dt"], rel=1e-6)
    assert found["mean"] == pytest.approx(0.5, rel=1e-14) and found["samples"] == 3
    assert found["twice"] == 0
    assert found["page"] == [True] * 5
    assert found["listed"].splitlines() == ["0 153"] and found["check"] is True and found["counted"] == [9, 8, 7]
    assert found["analysed"][0] == "mean" and float(found["analysed"][1]) == pytest.approx(0.5, rel=1e-14)
    assert "#BSUB -n 2" in found["script"] and "good morning" in done.stdout
    assert (found["integrator"]["order"], found["stages"]) == (2, 2)
    # what was added is compared between backends, and can be called
    assert {"flux central", "weights even", "interpolation alike", "positivity lenient"} <= set(found["sets"])
    assert "viscosity law exponential" in found["sets"] and found["called"] == found["greatest"]


@pytest.mark.slow
@pytest.mark.parametrize(("device", "ranks"), [("cpu", 1), ("cpu", 2), ("emulated", 1)])
def test_implicit_integrators_stand_beside_the_explicit_ones(device, ranks, tmp_path):
    """Backward Euler by GMRES and BDF2, each one file in a copy: their orders, and three steps, a restart and three
    more to the last bit, with what the history holds."""
    done = _in_a_copy(("time integrator",), "stepped.py", device, ranks, tmp_path)
    found = json.loads(done.stdout.splitlines()[-1])
    for name, order, depth in (("implicit_euler", 1, 0), ("two_step_bdf", 2, 1)):
        of_one = found[name]
        assert ranks > 1 or order - 0.25 < of_one["orders"][-1] < order + 0.3
        assert of_one["same"] and of_one["taken back"] and of_one["time"][0] == of_one["time"][1]
        assert of_one["held"] == depth * ranks and len(of_one["sizes"]) == depth
        assert 0 <= of_one["bytes"] - of_one["planned"] <= 8 * ranks  # the one step of all points


@pytest.mark.slow
@pytest.mark.parametrize(("device", "ranks"), [("cpu", 1), ("cpu", 2), ("emulated", 1), ("emulated", 2)])
def test_a_field_and_terms_are_declared_once(device, ranks, tmp_path):
    """In a copy: a field with halo, restart and output; a body force; a transported variable with a source, its own
    diffusivity and values on walls, by every plan."""
    done = _in_a_copy(("term of a stage", "field kept at every node"), "declared.py", device, ranks, tmp_path)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["pulled"]["off"] < 1e-13 and found["pulled"]["same"] and found["pulled"]["its field"]
    assert found["decays"]["same"]
    assert found["decays"]["apart"] < 1e-12 and len(found["decays"]["off"]) == 3
    assert max(found["decays"]["off"].values()) < 2e-5
    assert found["marked"]["same"] == [True] * 3 and found["marked"]["spread"] > 0.3
    assert found["marked"]["bytes"] == 8 * found["marked"]["planned"]

"""`hiresx post amplification`: amplification of turbulence by a plane shock at rest, compared with linear interaction
analysis."""

from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.exact.linear_interaction import isotropic_amplification
from hiresx.output.show import picture_file
from hiresx.post.result import Result, as_run, dataset, file_stem
from hiresx.post.turbulence import turbulence

# Number of nodes on each side of the shock that are left out of the means: the shock moves, and is some nodes wide.
SHOCK_NODES = 6
NAMES = {"R11": "variance of the velocity along x", "R22": "variance across x, mean of both", "k": "kinetic energy"}
# Smallest relative rise of the mean density over those nodes that counts as a shock (Mach 1.02). Smallest ratio of the
# turbulence behind to that ahead that counts as turbulence.
WEAK, ARRIVED = 0.03, 1e-6
WANTED = (
    "take a run in three dimensions that flows along +x through a plane shock at rest, in one block whose j and k are "
    "periodic and uniform, with [average], such as shock-turbulence"
)
Range = tuple[float, float]


def amplification(run: Any, ahead: Range | None = None, behind: Range | None = None) -> Result:
    """Return the amplification of turbulence by a plane shock at rest, and its comparison with linear interaction
    analysis. The Reynolds stress R11, R22 = (R_v_v + R_w_w)/2 and the turbulent kinetic energy k are given along x,
    divided by their means upstream of the shock. `run` (a folder or the result of `hiresx.open`) must have averages of
    a flow along +x whose other two index directions are homogeneous. `ahead`, `behind`: intervals of x in units of L,
    upstream and downstream, over which means are taken. By default `ahead` is the half of the upstream region that is
    nearer to the shock, and `behind` the far half of the region between the shock and the next sponge or the end of the
    grid.

    The theory holds for isotropic vortical turbulence far downstream of the shock (Ribner, NACA report 1164, 1954) at
    the measured upstream Mach number. Raises HiresxError for other averages, if the steepest rise of density is below 3
    %, if the upstream flow is subsonic, for intervals without nodes on their side of the shock, and if there is no
    turbulence downstream."""
    run = as_run(run)
    found = _along_x(run)
    x, rho, gamma = found["x"].values, found["rho"].values, float(run.case["gas"]["gamma"])
    at = int(np.argmax(np.diff(rho)))
    place = float(0.5 * (x[at] + x[at + 1]))
    rise = float(rho[at + 1 : at + 2 + SHOCK_NODES].max() / rho[max(at - SHOCK_NODES, 0) : at + 1].min()) - 1
    if not rise > WEAK:
        raise HiresxError(
            f"{run.path}: the mean density rises nowhere by more than {rise:.2%}: there is no shock", WANTED
        )
    early, late = x[: max(at + 1 - SHOCK_NODES, 0)], x[at + 1 + SHOCK_NODES :]
    late = late[late < _sponge_after(run.case, place)]
    if not early.size or not late.size:
        raise HiresxError(
            f"the steepest rise of density, at x = {place:.4g}, has no turbulence beside it",
            f"take a run whose shock is {SHOCK_NODES} nodes and more from the ends of the grid and from sponges",
        )
    ahead = ahead or (float(0.5 * (early[0] + early[-1])), float(early[-1]))
    behind = behind or (float(0.5 * (late[0] + late[-1])), float(late[-1]))
    before, after = _nodes(x, ahead, "--ahead", x[0], place), _nodes(x, behind, "--behind", place, x[-1])
    mach = _mach(found, before, gamma)
    values = {
        "R11": found["R_u_u"].values, "R22": 0.5 * (found["R_v_v"].values + found["R_w_w"].values),
        "k": found["k"].values,
    }  # fmt: skip
    theory = isotropic_amplification(mach, gamma)
    kept, rows = {}, []
    for name, along in values.items():
        level = float(along[before].mean())
        if not level > 0:
            raise HiresxError(f"there is no turbulence from x = {ahead[0]:.4g} to {ahead[1]:.4g}", "give --ahead A,B")
        if not float(along[after].mean()) > ARRIVED * level:
            raise HiresxError(
                f"{run.path}: no turbulence has arrived behind the shock: from x = {behind[0]:.4g} to {behind[1]:.4g} "
                f"{name} is {float(along[after].mean()) / level:.2g} of that ahead",
                "run longer and begin the averages later (average.start), or give --behind A,B",
            )
        kept[name] = "x", along / level, f"{NAMES[name]} over its mean ahead of the shock", "1"
        ratio, expected = float(along[after].mean()) / level, float(getattr(theory, name))
        rows.append({
            "quantity": name, "ahead": level, "amplification": ratio, "theory": expected,
            "difference": ratio / expected - 1, "largest": float(along[after.argmax() :].max()) / level,
        })  # fmt: skip
    kept["rho"] = "x", rho, "mean density", "rho_ref"
    summary = {
        "run": str(run.path), "averaged_over": float(run.averages.attrs["averaged_over"]), "shock_at_x": place,
        "mach": mach, "ahead": list(ahead), "behind": list(behind), "amplification": rows, "warnings": [],
    }  # fmt: skip
    data = dataset(kept, {"x": ("x", x, "x coordinate", "L")}, title=run.title)
    return Result(file_stem("amplification"), summary, data, lambda: _draw(data, summary), case=run.case)


def _along_x(run: Any) -> Any:
    """Return the statistics of turbulence over x. Raises HiresxError, with what is needed, for a run that has none."""
    try:
        found = turbulence(run, "j,k").data
    except HiresxError as unsuited:
        named = "" if str(run.path) in unsuited.message else f"{run.path}: "
        raise HiresxError(f"{named}{unsuited.message}", WANTED) from unsuited
    if found["k"].ndim != 1:
        raise HiresxError(f"{run.path}: the averages do not reduce to a line along x", WANTED)
    return found


def _sponge_after(case: Any, place: float) -> float:
    """Return the x at which the first sponge behind the shock begins."""
    sponges = [entry for entry in case.get("sponge") or () if entry["axis"] == "x"]
    begins = [entry["start"] for entry in sponges if isinstance(entry["start"], int | float)]
    return min((float(start) for start in begins if start > place), default=np.inf)


def _nodes(x: np.ndarray, given: Range, option: str, least: float, most: float) -> np.ndarray:
    low, high = given
    found = (x >= low) & (x <= high)
    if not found.any() or low < least or high > most:
        side = f"from x = {least:.4g} to {most:.4g}"
        raise HiresxError(f"{option} {low:g},{high:g}: no nodes there, or not {side}", "give a range of x on that side")
    return np.asarray(found)


def _mach(found: Any, before: np.ndarray, gamma: float) -> float:
    """Return the Mach number of the mean flow upstream. Raises HiresxError if it is subsonic."""
    u, rho, p = (float(found[name].values[before].mean()) for name in ("u", "rho", "p"))
    mach = u / float(np.sqrt(gamma * p / rho))
    if mach <= 1:
        raise HiresxError(f"the flow ahead of the shock has the Mach number {mach:.4g}", "take a run along +x")
    return mach


def _draw(data: Any, summary: Any) -> Any:
    figure = picture_file.figure(3.4)
    ax = figure.subplots()
    for n, row in enumerate(summary["amplification"]):
        name, colour = row["quantity"], f"C{n}"
        ax.plot(data["x"], data[name], color=colour, label=name)
        ax.plot(summary["behind"], [row["theory"]] * 2, "--", color=colour, label=f"{name}, theory")
    top = max(row["theory"] for row in summary["amplification"])
    ax.set_ylim(0, 1.8 * top)
    ax.set_xlabel("$x/L$")
    ax.set_ylabel("over the mean ahead of the shock")
    picture_file.legend_beside(ax)
    picture_file.add_grid(ax)
    ax.set_title(f"{data.attrs.get('title', '')}: Mach {summary['mach']:.4g}", fontsize=9)
    return figure

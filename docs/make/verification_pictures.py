"""Pictures of the verification page, drawn from the curves that are stored with the results.

One function for each group that has a picture, named like the group; it gets {check: curves} and returns a figure.
"""

from typing import Any

import numpy as np

from hiresx.case import load
from hiresx.exact import billig_standoff, blasius
from hiresx.output.show import picture_file
from hiresx.verify.reference_solutions import table

Curves = dict[str, dict[str, Any]]


def _label(ax: Any, x: str, y: str) -> None:
    ax.set_xlabel(x)
    ax.set_ylabel(y)


def accuracy(curves: Curves) -> Any:
    """L1 errors over the number of points."""
    figure = picture_file.figure(3.0)
    left, right = figure.subplots(1, 2)
    for name, found in curves.items():
        ax = left if name.startswith("density wave") else right
        ax.loglog(found["points"], found["error"], "o-", ms=3, label=name.removesuffix(": order"))
    for ax, wanted in ((left, "density wave: order"), (right, "vortex: order")):
        n, e = (np.array(curves[wanted][key]) for key in ("points", "error"))
        ax.loglog(n, 2.5 * e[-1] * (n[-1] / n) ** 5.0, "k:", label="order 5")
        _label(ax, "points in each direction", "$L_1$ error of $\\rho$")
        ax.set_xticks(n, [str(int(number)) for number in n])
        ax.minorticks_off()
        ax.legend()
    return figure


def shock_tubes(curves: Curves) -> Any:
    """Density of the four problems, 200 points."""
    figure = picture_file.figure(4.6)
    panels = figure.subplots(2, 2).ravel()
    for ax, (check, found) in zip(panels, curves.items(), strict=True):
        name = check.partition(",")[0]
        case = load(name)
        if name in ("shu-osher", "blast-waves"):
            fine = table(name)
            x, rho, label = fine["x"], fine["rho"], "6400 points"
        else:
            x = np.linspace(found["x"][0], found["x"][-1], 2001)
            rho, label = case.evaluate("exact", x, 0 * x, 0 * x, case.time.end)[0], "exact"
        ax.plot(x, rho, "k-", lw=0.7, label=label)
        ax.plot(found["x"], found["rho"], ".", ms=2.5, label="200 points")
        ax.set_title(case.title.partition(":")[0])
        _label(ax, "$x$", "$\\rho$")
        ax.legend()
    return figure


def viscous(curves: Curves) -> Any:
    """Couette flow: velocity and temperature."""
    (found,) = curves.values()
    figure = picture_file.figure(2.6)
    for ax, name, title in zip(figure.subplots(1, 2), ("u", "T"), ("velocity", "temperature"), strict=True):
        ax.plot(found[f"{name}_exact"], found["y"], "k-", lw=0.7, label="exact")
        ax.plot(found[name], found["y"], "o", ms=2.5, label=f"{len(found['y'])} points")
        _label(ax, f"{title} ${name}$", "$y/L$")
        ax.legend()
    return figure


def taylor_green(curves: Curves) -> Any:
    """Energy and its decay rate for three kinds of weights, beside the DNS."""
    dns = table("taylor-green-dns")
    named = zip(("Jiang-Shu", "Z", "linear"), curves.values(), strict=True)
    figure = picture_file.figure(3.0)
    energy, rate = figure.subplots(1, 2)
    energy.plot(dns["t"], dns["E"], "k-", lw=0.8, label="DNS")
    rate.plot(dns["t"], dns["rate"], "k-", lw=0.8, label="DNS")
    for name, found in named:
        energy.plot(found["t"], found["E"], label=f"$64^3$, {name}")
        rate.plot(found["t"], found["rate"], label=f"$64^3$, {name}")
    rate.fill_between([5.8, 6.6], 0.0143, 0.0158, color="0.85")
    rate.annotate("where the peak of\nJiang-Shu must lie", (5.7, 0.0151), fontsize=8, ha="right", va="center")
    energy.set_ylabel("$E/U^2$")
    rate.set_ylabel("$-dE/dt$")
    energy.legend()
    for ax in (energy, rate):
        ax.set_xlabel("turnover times")
    return figure


def flat_plate(curves: Curves) -> Any:
    """Friction along the plate and the velocity profile."""
    (found,) = curves.values()
    figure = picture_file.figure(2.8)
    friction, profile = figure.subplots(1, 2)
    friction.plot(found["x"], found["friction"], "o", ms=2.5)
    friction.axhline(2 * float(blasius(0.0)[2]), color="k", lw=0.7)
    _label(friction, "$x/L$", "$C_f\\,\\sqrt{Re_x}$")
    friction.set_ylim(0.6, 0.73)
    eta = np.linspace(0, 8, 200)
    profile.plot(blasius(eta)[1], eta, "k-", lw=0.7, label="Blasius")
    profile.plot(found["velocity"], found["eta"], "o", ms=2.5, label=f"$x = {found['place'][0]:.2f}\\,L$")
    profile.set_ylim(0, 8)
    _label(profile, "$u/U$", "$\\eta$ (Dorodnitsyn)")
    profile.legend()
    return figure


def bow_shock(curves: Curves) -> Any:
    """Stand-off over the Mach number."""
    (found,) = curves.values()
    figure = picture_file.figure(2.6)
    ax = figure.subplots(1, 1)
    mach = np.linspace(2.5, 9, 100)
    ax.plot(mach, [billig_standoff(m)[0] for m in mach], "k-", lw=0.7, label="Billig's correlation")
    low, high = (np.array([f * billig_standoff(m)[0] for m in mach]) for f in (0.95, 1.05))
    ax.fill_between(mach, low, high, color="0.88", label="5 %")
    ax.plot(found["mach"], found["standoff"], "o", ms=3.5, label="computed, and how far above Billig's")
    for m, standoff in zip(found["mach"], found["standoff"], strict=True):
        share = standoff / billig_standoff(m)[0] - 1
        ax.annotate(f"{100 * share:+.1f} %", (m, standoff), (4, 4), textcoords="offset points", fontsize=7)
    _label(ax, "Mach number", "stand-off / radius")
    ax.set_ylim(0.35, 0.8)
    ax.legend()
    return figure


def shock_vorticity(curves: Curves) -> Any:
    """Amplitude of the vorticity along the flow."""
    figure = picture_file.figure(2.6)
    ax = figure.subplots(1, 1)
    for check, found in curves.items():
        (line,) = ax.plot(found["x"], found["ratio"], label=check.partition(":")[0])
        ax.plot(found["x"], found["theory"], "--", color=line.get_color(), lw=0.7)
    _label(ax, "$x$", "vorticity, over that ahead")
    ax.set_xlim(-1.5, 8)
    ax.set_ylim(0.8, 2.2)
    ax.legend(title="theory dashed")
    return figure


def waves(curves: Curves) -> Any:
    """What is left of a sound wave's amplitude, and its phase, over points per wave length."""
    figure = picture_file.figure(4.0)
    left, right = figure.subplots(1, 2)
    for check, found in curves.items():
        name = check.partition(":")[0]
        if "original" in name or name.startswith(("roe", "local")):
            continue  # the same to the thickness of a line
        style = "o" if name.endswith("1e-6") else "s--"
        (line,) = left.semilogy(found["points"], -np.array(found["amplitude"]), style, ms=3.5, mfc="none", label=name)
        right.semilogy(found["points"], -np.array(found["phase"]), style, ms=3.5, mfc="none", color=line.get_color())
        if name.endswith("1e-6"):
            for ax, key in ((left, "theory_amplitude"), (right, "theory_phase")):
                ax.semilogy(found["points"], -np.array(found[key]), "-", lw=0.8, color=line.get_color(), zorder=1)
    for ax, label in ((left, "part of the amplitude lost in 10 wave lengths"), (right, "phase behind, degrees")):
        _label(ax, "points per wave length", label)
        ax.set_xticks([6, 8, 12, 16])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    left.set_title("marks: measured; full lines: linear theory", loc="left")
    return figure


def mixing_layer(curves: Curves) -> Any:
    """Growth of the mixing layer's wave."""
    figure = picture_file.figure(2.8)
    ax = figure.subplots()
    for check, found in curves.items():
        if not check.endswith("error of the rate"):
            continue
        (line,) = ax.semilogy(found["time"], found["wave"], ".", ms=3, label=check.partition(":")[0])
        ax.semilogy(found["time"], found["theory"], "-", lw=0.8, color=line.get_color())
    _label(ax, "$t\\,c/L$", "amplitude of $v$")
    ax.set_title("marks: measured; lines: linear theory", loc="left")
    ax.legend()
    return figure

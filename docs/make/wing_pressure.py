"""Pressure coefficients of a run of the case onera-m6 at the seven stations of the measurement, beside measured ones:

python docs/make/wing_pressure.py RUN [--measured TABLE.csv] [--out TABLE.csv]

The measured table (AGARD AR-138 (1979), B1, test 2308) has the columns eta, x_over_c, z_over_c and cp. Printed are, for
each station, the suction peak, the place of the last shock on the upper side, where Cp rises most steeply, and the mean
and largest absolute differences from the measured values. `--out` keeps eta, side, x/c and Cp of all nodes.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

import hiresx

# Of the semi-span.
STATIONS = (0.20, 0.44, 0.65, 0.80, 0.90, 0.96, 0.99)
GAMMA = 1.4


def sections(folder: Path) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """For each station: eta, x/c (n,) from the trailing edge along the lower side to the upper one, and Cp (n,);
    along the span linearly between nodes."""
    run = hiresx.open(folder)
    parameters = run.case["parameters"]
    speed, span = np.hypot(parameters["u"], parameters["v"]), parameters["semi_span"]
    block = run.fields(-1, ["p"])["wing"].isel(j=0).load()
    wake = run.case["grid"]["n_wake"]
    x, z, p = (np.asarray(block[name].transpose("k", "i"))[:, wake:-wake] for name in ("x", "z", "p"))
    cp = (p - 1 / GAMMA) / (0.5 * speed**2)
    found = []
    for eta in STATIONS:
        at, own = (np.array([np.interp(eta * span, *line) for line in zip(z.T, a.T, strict=True)]) for a in (x, cp))
        chord = 1 - (1 - parameters["taper"]) * eta
        leading = np.tan(np.radians(run.case["grid"]["sweep"])) * eta * span
        found.append((eta, (at - leading) / chord, own))
    return found


def shock(x: np.ndarray, cp: np.ndarray) -> float:
    """x/c of the steepest rise of Cp behind 0.15 chords on the upper side, in the middle between nodes."""
    slope, middle = np.diff(cp) / np.diff(x), 0.5 * (x[1:] + x[:-1])
    behind = (middle > 0.15) & (middle < 0.9)
    return float(middle[behind][np.argmax(slope[behind])])


def differences(rows: list[dict[str, str]], eta: float, x: np.ndarray, cp: np.ndarray) -> np.ndarray:
    """Cp less the measured one at all taps of a station."""
    half = len(x) // 2
    found = []
    for row in rows:
        if abs(float(row["eta"]) - eta) < 1e-6:
            side = slice(half, None) if float(row["z_over_c"]) > 0 else slice(half - 1, None, -1)
            found.append(np.interp(float(row["x_over_c"]), x[side], cp[side]) - float(row["cp"]))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--measured", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = list(csv.DictReader(given.measured.open())) if given.measured else []
    kept = []
    print("eta    least Cp   shock x/c   mean and largest |Cp - measured|")
    for eta, x, cp in sections(given.run):
        half = len(x) // 2
        off = abs(differences(rows, eta, x, cp))
        told = f"{off.mean():.3f}  {off.max():.3f}  ({len(off)} taps)" if len(off) else ""
        print(f"{eta:.2f}   {cp.min():8.3f}   {shock(x[half:], cp[half:]):9.3f}   {told}")
        kept += [(eta, "lower" if n < half else "upper", *pair) for n, pair in enumerate(zip(x, cp, strict=True))]
    if given.out:
        with given.out.open("w", newline="") as file:
            csv.writer(file).writerows([("eta", "side", "x_over_c", "cp"), *kept])


if __name__ == "__main__":
    main()

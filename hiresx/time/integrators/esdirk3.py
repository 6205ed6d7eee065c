"""An implicit Runge-Kutta scheme of order three: implicit steps of unsteady flow, of any size."""

from fractions import Fraction

from hiresx.time.esdirk import Esdirk, Tableau, row

# Marks an integrator of unsteady flow; hiresx.case.implicit_table searches for this line.
UNSTEADY = True


class Esdirk3(Esdirk):
    """The ESDIRK scheme of third order that is the implicit part of ARK3(2)4L[2]SA. Source: C. A. Kennedy & M. H.
    Carpenter, Applied Numerical Mathematics 44 (2003) 139, appendix C. It has four stages, of which the first is
    explicit. It is L-stable, stiffly accurate and of stage order two."""

    order, usual_drop = 3, 1e4
    tableau = Tableau(
        Fraction(1767732205903, 4055673282236),
        (
            row((1767732205903, 4055673282236)),
            row((2746238789719, 10658868560708), (-640167445237, 6845629431997)),
            row((1471266399579, 7840856788654), (-4482444167858, 7529755066697), (11266239266428, 11593286722821)),
        ),
        row(
            (2756255671327, 12835298489170), (-10771552573575, 22201958757719), (9247589265047, 10645013368117),
            (2193209047091, 5459859503100),
        ),
    )  # fmt: skip

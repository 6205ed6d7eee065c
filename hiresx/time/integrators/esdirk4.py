"""An implicit Runge-Kutta scheme of order four: implicit steps of unsteady flow, of any size."""

from fractions import Fraction

from hiresx.time.esdirk import Esdirk, Tableau, row

# Marks an integrator of unsteady flow; hiresx.case.implicit_table searches for this line.
UNSTEADY = True


class Esdirk4(Esdirk):
    """The ESDIRK scheme of fourth order that is the implicit part of ARK4(3)6L[2]SA. Source: C. A. Kennedy & M. H.
    Carpenter, Applied Numerical Mathematics 44 (2003) 139, appendix C. It has six stages, of which the first is
    explicit. It is L-stable, stiffly accurate and of stage order two."""

    order, usual_drop = 4, 1e5
    tableau = Tableau(
        Fraction(1, 4),
        (
            row((1, 4)),
            row((8611, 62500), (-1743, 31250)),
            row((5012029, 34652500), (-654441, 2922500), (174375, 388108)),
            row((15267082809, 155376265600), (-71443401, 120774400), (730878875, 902184768), (2285395, 8070912)),
            row((82889, 524892), (0, 1), (15625, 83664), (69875, 102672), (-2260, 8211)),
        ),
        row(
            (4586570599, 29645900160), (0, 1), (178811875, 945068544), (814220225, 1159782912), (-3700637, 11593932),
            (61727, 225920),
        ),
    )  # fmt: skip

"""The five-stage fourth-order low-storage scheme RK4(3)5[2N] of Carpenter and Kennedy."""

from hiresx.time.low_storage import LowStorage, stage_times


class CarpenterKennedyRk4(LowStorage):
    """Low-storage Runge-Kutta scheme of fourth order with five stages. Source: M. H. Carpenter & C. A. Kennedy, NASA TM
    109112 (1994), solution 3."""

    order = 4
    a = (
        0.0,
        -567301805773 / 1357537059087,
        -2404267990393 / 2016746695238,
        -3550918686646 / 2091501179385,
        -1275806237668 / 842570457699,
    )
    b = (
        1432997174477 / 9575080441755,
        5161836677717 / 13612068292357,
        1720146321549 / 2090206949498,
        3134564353537 / 4481467310338,
        2277821191437 / 14882151754819,
    )
    cfl, viscous_cfl = 2.099, 1.851
    times = stage_times(a, b)

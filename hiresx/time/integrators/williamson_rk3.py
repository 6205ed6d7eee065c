"""Williamson's low-storage scheme of three stages and third order."""

from hiresx.time.low_storage import LowStorage, stage_times


class WilliamsonRk3(LowStorage):
    """Low-storage Runge-Kutta scheme of third order with three stages. It amplifies a wave by the same factor, and so
    has the same stability limits, as every scheme of third order with three stages. Source: J. H. Williamson, Journal
    of Computational Physics 35 (1980) 48, case 7."""

    order = 3
    a = (0.0, -5 / 9, -153 / 128)
    b = (1 / 3, 15 / 16, 8 / 15)
    cfl, viscous_cfl = 1.375, 0.998
    times = stage_times(a, b)

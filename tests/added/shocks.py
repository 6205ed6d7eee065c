"""A sensor of shocks ahead of the fluxes that read it, scheme.flux = "hybrid"."""

from hiresx.rhs.terms import FLUX_FIELDS, HALOS, Term


def terms(case, program, states):
    if case.scheme.flux != "hybrid":
        return
    calls = [
        program.call(
            "shocks", s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, q=s.q,
            sensor=s.array(FLUX_FIELDS),
        )
        for s in states
    ]  # fmt: skip
    yield Term("sensor", calls, needs=(HALOS,), gives=(FLUX_FIELDS,))

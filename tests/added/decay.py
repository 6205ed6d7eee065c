"""A source of the passive scalars: each decays by itself, [decay]."""

from hiresx.rhs.terms import Term


def terms(case, program, states):
    if case.decay is None:
        return
    calls = [
        program.call("decay", s.size, **s.place, jacobian=s.jacobian, rate=case.decay.rate, scalar=scalar, r=r)
        for s in states
        for scalar, r in s.scalars
    ]
    yield Term("decay", calls)

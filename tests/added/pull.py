"""A body force: the same acceleration everywhere, [pull]."""

from hiresx.rhs.terms import Term


def terms(case, program, states):
    if case.pull is None:
        return
    names = dict(zip(("ax", "ay", "az"), case.pull.acceleration, strict=True))
    calls = [
        program.call("pull", s.size, **s.place, sv=s.variable_stride, q=s.q, jacobian=s.jacobian, **names, r=s.r)
        for s in states
    ]
    yield Term("pull", calls)

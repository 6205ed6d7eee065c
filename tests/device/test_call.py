"""What is found where a launch is built: arguments that were swapped, left out or made up, arrays that do not hold the
nodes which a kernel visits."""

import numpy as np
import pytest
from kernels_alone import PLACE, POINTS, SHAPE, SIZE, SMALL, inside, program

from hiresx import kernels
from hiresx.device import Configuration
from hiresx.device.arguments import place, scalar
from hiresx.device.wrappers import generate


@pytest.fixture
def update(backend):
    """The kernel `update`, and arguments that fit it."""
    fields = {name: np.full((5, *SHAPE), float(n + 1)) for n, name in enumerate(("q0", "q", "r"))}
    numbers = {"sv": POINTS, "dt_stride": 0, "a": 0.0, "b": 1.0, "first": 1}
    one = {"jacobian": np.ones(SHAPE), "dt": np.full(1, 0.5)}
    return program(backend, SMALL), PLACE | numbers | fields | one


def exchanged(arguments: dict, one: str, other: str) -> dict:
    return arguments | {one: arguments[other], other: arguments[one]}


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("sj", "sk", r"argument sk \(int\): the stride along k is 17, and that along j, sj, 221"),
        ("o", "sk", "argument sv "),
        ("sk", "sv", r"argument sv \(long long\): variables lie 221 items apart, but there are nodes up to number "),
        (
            "r",
            "jacobian",
            r"argument r \(const real \*\): needs 5 variables of nodes up to number \d+, \d+ items; got ",
        ),
        ("jacobian", "dt", r"argument jacobian \(const real \*\): needs 1 variables of nodes up to number \d+"),
        ("q", "dt", "argument q "),
        ("a", "first", r"argument a \(real\): needs a number with a fraction, got the int 1"),
        ("a", "q", r"argument q \(real \*\): needs a numpy.ndarray of float64, got float"),
    ],
)
def test_swapped_arguments(update, one, other, message):
    kernel, arguments = update
    kernel.call("update", SIZE, **arguments)
    with pytest.raises(TypeError, match=f"^kernel update, {message}"):
        kernel.call("update", SIZE, **exchanged(arguments, one, other))


@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_whole_numbers_fit_up_to_the_ends_of_their_type(kind):
    dtype, limits = np.dtype(kind), np.iinfo(kind)
    for number in (limits.min, limits.max, np.int16(-7), True):
        assert scalar(dtype, number) == number
    for number in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(TypeError, match=f"^{number} does not fit {dtype}$"):
            scalar(dtype, number)
    with pytest.raises(TypeError):
        scalar(dtype, 1.0)


@pytest.mark.parametrize(("value", "said"), [(1, "got the int 1"), ("1", "needs a number, got str")])
def test_a_real_number_is_no_whole_one(value, said):
    assert scalar(np.dtype("f4"), np.float32(0.5)) == 0.5
    with pytest.raises(TypeError, match=said):
        scalar(np.dtype("f8"), value)


def test_missing_and_unknown_arguments(update):
    kernel, arguments = update
    with pytest.raises(TypeError, match=r"^kernel update takes no argument step; it takes o, sj, sk, sv, q0, q, r, "):
        kernel.call("update", SIZE, **arguments, step=0.5)
    del arguments["dt"]
    with pytest.raises(TypeError, match=r"^kernel update: missing argument dt \(const real \*\)$"):
        kernel.call("update", SIZE, **arguments)


def test_what_is_built_is_made_as_often_as_one_likes(update):
    kernel, arguments = update
    call = kernel.call("update", SIZE, **dict(reversed(arguments.items())))
    assert (arguments["q"] == 2.0).all(), "nothing is made yet"
    values = [arguments[name] for _, name in call.signature.arguments]
    assert call.name == "update" and [*map(id, call.arguments.values())] == [*map(id, values)]
    for n in (1, 2):
        kernel.run(call)
        assert (inside(arguments["q"]) == 2.0 + n * 1.5).all()
    kernel.prepare([call])()
    assert (inside(arguments["q"]) == 6.5).all() and arguments["q"][0, 0, 0, 0] == 2.0


def test_views_hold_what_lies_behind_their_first_item(update):
    kernel, arguments = update
    longer, more = np.zeros((6, *SHAPE)), np.zeros((6, *SHAPE))
    kernel.call("update", SIZE, **(arguments | {"q": longer[1:], "r": more[:5]}))
    kernel.call("update", SIZE, **(arguments | {"q": longer[:, :-3]}))  # what it visits ends there
    for short in (longer[2:], longer[:5, :-4], longer[0]):
        with pytest.raises(TypeError, match="argument q "):
            kernel.call("update", SIZE, **(arguments | {"q": short}))


def test_nothing_to_visit_asks_for_nothing(update):
    kernel, arguments = update
    kernel.launch("update", (0, 3, 3), **(arguments | {"q": np.zeros(0)}))


def test_faces(backend):
    extent, area, q = (SIZE[0], SIZE[1], 1), np.zeros((3, *SHAPE)), np.zeros((5, *SHAPE))
    face = {"o": PLACE["o"], "s1": 1, "s2": PLACE["sj"], "sn": PLACE["sk"], "sv": POINTS}
    build = program(backend, SMALL).call
    build("reflect_ghost", extent, **face, m=area, q=q)
    with pytest.raises(TypeError, match=r"kernel reflect_ghost, argument q \(real \*\): needs 5 variables"):
        build("reflect_ghost", extent, **face, m=q, q=area)
    with pytest.raises(TypeError, match=r"argument o .*first node has the number -1"):
        build("reflect_ghost", extent, **(face | {"o": -1}), m=area, q=q)
    with pytest.raises(TypeError, match="argument m "):
        build("reflect_ghost", extent, **face, m=area[:2], q=q)


def test_kernels_declare_their_fields():
    """Every kernel that says where its nodes are says what it takes of them, in the sizes of the equations."""
    sweep = None
    for target in ("cpu", "cuda"):
        _, found = generate(Configuration(viscosity="sutherland", schmidt=(0.7, 0.4)), target)
        for name, signature in found.items():
            # Those of kernels that go by lists say how memory keeps them, and no more.
            assert signature.holds or place(signature) is None, name
        sweep = found.get("inviscid_sweep") or sweep
    assert found["update"].holds == {"q0": 7, "q": 7, "r": 7, "jacobian": 1}
    assert found["viscous_flux"].holds == {"w": 6, "m": 9, "jacobian": 1, "flux": 18}
    assert sweep.holds == {"q": 7, "m": 3, "viscous_flux": 6, "r": 7, "sums": 7}
    assert sweep.optional == {"viscous_flux", "sums"}
    assert found["scalar_difference"].holds == {"flux": 2, "r": 2}


def test_fields_are_pointers():
    text = "constexpr int five = 2 * 2 + 1;\nKERNEL(a, int i, int j, int k, const_field<five> q, field<2 * five> r) {}"
    ((found, _),) = kernels.declarations(text)
    assert found.arguments == (("const real *", "q"), ("real *", "r")) and found.holds == {"q": 5, "r": 10}

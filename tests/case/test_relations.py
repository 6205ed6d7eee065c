"""Numbers that follow from others: formulas in the case file, parameters that case.py derives, and alternatives."""

import pytest

from hiresx.case import Case, load
from hiresx.errors import HiresxError

CASE = """
title = "= not a formula: a text for people"
alternatives = [["speed", "mach"]]

[parameters]
speed = 2.0
depth = "= 2 * grid.upper[1]"

[grid]
generator = "box"
n = [16, "= grid.n[0] // 1", 1]
lower = [0.0, 0.0, 0.0]
upper = [4.0, 1.0, 0.0]

[gas]
gamma = 1.4

[time]
end = 4.0

[initial]
function = "initial"

[average]
start = "= time.end / 2"

[[boundary]]
faces = "all"
type = "slip-wall"

[[sponge]]
axis = "x"
start = "= sponge[0].end - max(parameters.width, 1)"
end = "= grid.upper[0]"
strength = "= gas.prandtl"
state = { rho = 1.0, p = 0.7 }

[presets.long]
grid.upper = [8.0, 1.0, 0.0]
parameters.mach = 3.0
"""
FUNCTIONS = """
def derived(*, speed=None, mach=None, factor=1.0, gamma):
    if speed is None:
        speed = mach
    if speed <= 0:
        raise ValueError(f"speed = {speed:g} is not positive")
    return {"speed": speed, "mach": speed, "width": speed / 2}


def initial(x, y, z, *, speed, depth, gamma):
    return 1.0, speed, 0.0, 0.0, 1 / gamma
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "case.toml").write_text(CASE.replace("// 1", "* 1"))
    (tmp_path / "case.py").write_text(FUNCTIONS)
    return tmp_path


def test_numbers_follow_preset_and_overrides(folder):
    case = load(folder)
    assert case.title.startswith("= not") and case.grid.n == (16, 16, 1)
    assert case.parameters == {"speed": 2.0, "depth": 2.0, "mach": 2.0, "width": 1.0}
    assert (case.sponge[0].start, case.sponge[0].end, case.sponge[0].strength) == (3.0, 4.0, 0.72)
    assert case.average.start == 2.0
    long = load(folder, "long", ["time.end=10"])
    # the preset's mach takes the place of speed
    assert (long.sponge[0].start, long.sponge[0].end, long.average.start) == (6.5, 8.0, 5.0)
    assert long.derived == {"speed": 3.0, "width": 1.5}
    assert load(folder, "long", ["parameters.speed=5.0"]).parameters["mach"] == 5.0
    assert load(folder, overrides=["sponge.0.start=-1.5"]).sponge[0].start == -1.5
    assert load(folder, overrides={"sponge.0.start": "= -1.5"}).sponge[0].start == -1.5


def test_a_kept_case_keeps_its_relations(folder):
    """What is written is the same case again, to the last bit, and still moves."""
    case = load(folder, "long", ["parameters.mach=1.1"])
    (folder / "case.toml").write_text(case.to_toml())
    again = load(folder)
    assert again.model_dump() == case.model_dump() and again.derived == case.derived
    assert 'end = "= grid.upper[0]"' in case.to_toml() and "width = " not in case.to_toml()
    assert load(folder, overrides=["grid.upper=[9.0, 1.0, 0.0]"]).sponge[0].end == 9.0
    # nor does one that holds all numbers contradict itself
    assert Case.from_dict(case.model_dump(), folder).model_dump() == case.model_dump()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sponge.0.end== grid.uper[0]", r'sponge.0.end = "= grid.uper\[0\]": there is no grid.uper'),
        ("sponge.0.end== gird.upper[0]", r"there is no gird\.upper\[0\]"),
        ("sponge.0.end== sponge[9].start", r"there is no sponge\[9\]"),
        ("sponge.0.end== grid.upper[3]", r"there is no grid\.upper\[3\]"),
        ("sponge.0.end== time.end[1]", r"there is no time\.end\[1\]"),
        ("sponge.0.end== parameters.breadth", "there is no parameters.breadth"),
        ("sponge.0.end== grid.generator", "grid.generator is not a number: 'box'"),
        ("sponge.0.end== gas.reynolds", "gas.reynolds has no value"),
        ("sponge.0.end== sponge[0].start", "it depends on itself, by sponge.0.end"),
        ("sponge.0.end== 1 / (time.end - 4)", "cannot be computed: float division by zero"),
        ("sponge.0.end== 10.0 ** 400", "cannot be computed"),
        ("sponge.0.end== 2 ** 100000", "the exponent 100000 is too large"),
        ("sponge.0.end== 10 ** 400", "cannot be computed: int too large"),
        ("sponge.0.end== 10 ** 308 * 10", "cannot be computed: int too large"),
        ("sponge.0.end== 10 ** 308 * 10 / 10 ** 308", "cannot be computed: int too large"),
        ("sponge.0.end== ((9 ** 1000) ** 1000) ** 1000", "cannot be computed: int too large"),
        ("sponge.0.end== 1" + 400 * "0", "cannot be computed: int too large"),
        ("sponge.0.end== round(5, -9999999999) - 10 ** 400", "cannot be computed: int too large"),
        ("sponge.0.end== " + "+".join(1200 * ["1"]), "it has too many terms"),
        ("sponge.0.end== " + 1200 * "-" + "1", "it "),
        (f"grid.n=[1{400 * '0'}, 1, 1]", r"grid\.n\.0 is an integer of more than 64 bits"),
        (f"time.steps=-1{400 * '0'}", r"time\.steps is an integer of more than 64 bits"),
        ("grid.n.0== 10 ** 30", r"grid\.n\.0 = 1e\+30: must be a whole number"),
        ("sponge.0.end== 0.1 ** -400", "cannot be computed: Numerical result out of range"),
        ("sponge.0.end== max(1, 2, key=3)", r"max\(1, 2, key=3\): arguments have no names in it"),
        ("sponge.0.end== min(1)", r"min\(1\): min takes 2 or more, not 1"),
        ("sponge.0.end== round(1, 2, 3)", r"round takes 1 or 2, not 3"),
        ("sponge.0.end== sqrt()", r"sqrt\(\): sqrt takes 1, not 0"),
        ("sponge.0.end== (-1) ** 0.5", "it is "),
        ("sponge.0.end== 1 +", "it is not an expression"),
        ("sponge.0.end== open('x')", r"open\('x'\) is not allowed in it"),
        ("sponge.0.end== grid.__class__", "there is no grid.__class__"),
        ("sponge.0.end==", "it is not an expression"),
        ("title== 1", None),
        ("grid.n.0== time.end + 0.5", "grid.n.0 = 4.5: must be a whole number"),
        ("parameters.speed=-1", "parameters: speed = -1 is not positive"),
        ("parameters.width=3.0", "parameters.width = 3.0 follows from the other parameters, and is 1"),
        ("parameters.depth== parameters.width", "there is no parameters.width"),
        ("parameters={depth = 1.0, speed = 2.0, mach = 2.5}", "speed = 2 and mach = 2.5 contradict each other"),
        ("parameters.breadth=3.0", "no function of case.py takes it"),
        ("alternatives=[['a', 'b']]", "parameters: give one of a, b"),
    ],
)
def test_what_cannot_follow_is_named(folder, override, said):
    if said is None:
        assert load(folder, overrides=[override]).title == "= 1"
        return
    with pytest.raises(HiresxError, match=said):
        load(folder, overrides=[override])


def test_alternatives_that_agree_are_one(folder):
    case = load(folder, overrides=["parameters={depth = 1.0, speed = 2.5, mach = 2.5}"])
    assert case.derived == {"width": 1.25}
    with pytest.raises(HiresxError, match="mach and speed have the same meaning"):
        load(folder, overrides=["parameters.speed=2.0", "parameters.mach=2.0"])


def test_a_parameter_in_a_formula_is_read(folder):
    text = (folder / "case.toml").read_text()
    (folder / "case.toml").write_text(text.replace("[parameters]", "[parameters]\nsize = 7.0"))
    with pytest.raises(HiresxError, match=r"parameters\.size: no function"):
        load(folder)
    text = (folder / "case.toml").read_text().replace('end = "= grid.upper[0]"', 'end = "= parameters.size"')
    (folder / "case.toml").write_text(text)
    assert load(folder).sponge[0].end == 7.0


def test_faults_of_derived_name_their_line(folder):
    (folder / "case.py").write_text(FUNCTIONS.replace("speed <= 0", "speed <= nothing"))
    with pytest.raises(HiresxError, match=r'case\.py, line 5: function "derived" failed: .*nothing'):
        load(folder)
    (folder / "case.py").write_text(FUNCTIONS.replace('{"speed": speed, "mach": speed, "width": speed / 2}', "speed"))
    with pytest.raises(HiresxError, match='function "derived" returned no dictionary'):
        load(folder)


def test_a_chain_of_formulas_that_is_too_long_is_refused(folder):
    """900 parameters, each of which needs the one that is written behind it."""
    chain = {f"parameters.p{n}": f"= parameters.p{n - 1} + 1" for n in range(900, 0, -1)}
    with pytest.raises(HiresxError, match="too long a chain of formulas"):
        load(folder, overrides={"parameters.p0": 1.0, "sponge.0.end": "= parameters.p900", **chain})
    short = {key: text for key, text in chain.items() if int(key.removeprefix("parameters.p")) <= 50}
    assert (
        load(folder, overrides={"parameters.p0": 1.0, "sponge.0.end": "= parameters.p50", **short}).sponge[0].end == 51
    )


def test_an_integer_that_python_does_not_convert_is_named_with_its_line(folder):
    """5000 digits: more than int() takes. As an override it is a text, which is no number."""
    text = (folder / "case.toml").read_text()
    (folder / "case.toml").write_text(text.replace("end = 4.0", f"end = 4.0\nsteps = 1{5000 * '0'}"))
    line = text.splitlines().index("end = 4.0") + 2
    with pytest.raises(HiresxError, match=rf"case\.toml: line {line}: steps = 1000.*\.\.\. is an integer of more than"):
        load(folder)
    (folder / "case.toml").write_text(text)
    with pytest.raises(HiresxError, match="must be a whole number"):
        load(folder, overrides=[f"time.steps=1{5000 * '0'}"])


def test_digits_of_a_formula_are_bounded(folder):
    assert load(folder, overrides=["sponge.0.end== 4 + round(5, -9999999999)"]).sponge[0].end == 4.0
    assert load(folder, overrides=["sponge.0.end== round(4.123, 2)"]).sponge[0].end == 4.12


def test_a_formula_is_shown_whole_up_to_200_characters():
    for length in (200, 201):
        text = "= none + " + "1" * (length - len("= none + "))
        assert len(text) == length
        with pytest.raises(HiresxError) as found:
            load("sod", overrides=[f"time.end={text}"])
        assert (f'"{text}"' in found.value.message) == (length == 200), found.value.message
        assert (f'"{text[:200]}..."' in found.value.message) == (length == 201)

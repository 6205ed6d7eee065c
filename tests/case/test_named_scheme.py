"""Named choices of the scheme: the keys that a choice gives, those that are given otherwise, and what it refuses."""

import tomllib

import pytest

from hiresx import HiresxError, load
from hiresx.case import Case
from hiresx.case.named_scheme import keys_in_force

CHOICE = "scheme.choice=low_dissipation"
SPELT = ['scheme.inviscid="hybrid"', "scheme.hybrid.threshold=0.03", 'scheme.weights="teno"', "filter.order=10",
         "filter.strength=0.03"]  # fmt: skip
REFINE = "refine={region=[{x=[0.25,0.5]}]}"


def solved(case: Case) -> dict:
    """What is computed by: the case's tables, without the name of the choice."""
    document = case.document()
    document["scheme"].pop("choice")
    return document


def test_the_choice_is_its_keys():
    assert solved(load("sod", overrides=[CHOICE])) == solved(load("sod", overrides=SPELT))


BELOW = """
scheme = { inviscid = "hybrid", weights = "za", hybrid = { threshold = 0.5 }, flux = "roe" }
filter = { order = 8, strength = 0.2 }
grid = { generator = "box", n = [32, 1, 1], lower = [0.0, 0.0, 0.0], upper = [1.0, 0.0, 0.0], periodic = ["x"] }
time = { steps = 1 }
initial = { state = { rho = 1.0, p = 0.7 } }
boundary = [{ faces = "all", type = "periodic" }]
presets.chosen = { scheme = { choice = "low_dissipation" } }
"""


def test_a_layer_that_gives_the_choice_drops_its_keys_of_those_below(tmp_path):
    (tmp_path / "case.toml").write_text(BELOW)
    found = load(tmp_path, "chosen", ["filter.order=6"])
    of_choice = load("sod", overrides=SPELT)
    assert found.scheme.hybrid == of_choice.scheme.hybrid and found.scheme.weights == of_choice.scheme.weights
    assert found.scheme.flux == "roe"  # which it does not decide
    assert found.filter == of_choice.filter.model_copy(update={"order": 6})
    assert load(tmp_path, None, [CHOICE]).filter == of_choice.filter


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["scheme.weights=za"], "weights za, inviscid hybrid, hybrid.sensor jump, hybrid.threshold 0.03;"),
        (["scheme.interpolation=modified7"], "interpolation modified7, weights z,"),
        (["scheme.hybrid.threshold=0.1", "filter.order=8"], "threshold 0.1; filter.order 8, filter.strength 0.03"),
        (["scheme.hybrid.sensor=ducros"], "hybrid.sensor ducros, hybrid.threshold 0.5;"),
        (["filter.strength=0"], "hybrid.threshold 0.03; no filter"),
        ([REFINE], "hybrid.threshold 0.03, hybrid.floor 0.01; no filter"),
    ],
)
def test_keys_may_be_given_otherwise_and_are_read_back(given, found):
    case = load("sod", overrides=[*given, CHOICE])
    assert found in keys_in_force(case)
    assert Case.from_dict(tomllib.loads(case.to_toml())).document() == case.document()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('scheme.inviscid="split"', 'scheme.inviscid = "split" is not what scheme.choice = "low_dissipation" stands'),
        ('time.integrator="implicit"', 'for unsteady flow: time.integrator = "implicit" .* scheme.choice = "none"'),
        ('scheme.choice="low-dissipation"', "scheme.choice"),
        ("filter.order=7", "filter.order"),
        ('scheme.interpolation="modified9"', "scheme.interpolation"),
    ],
)
def test_what_does_not_go_with_it_is_named(given, said):
    with pytest.raises(HiresxError, match=said):
        load("sod", overrides=[CHOICE, given])


@pytest.mark.parametrize(
    ("given", "epsilon"),
    [
        (['time.integrator="implicit"'], 1e-2),
        (['time.integrator="implicit"', "scheme.flux=roe"], 1e-2),
        (['time.integrator="implicit"', "scheme.epsilon=1e-5"], 1e-5),
        (['time.integrator="bdf2"'], 1e-6),
        ([], 1e-6),
    ],
)
def test_steady_flow_has_an_epsilon_of_its_own_where_none_is_given(given, epsilon):
    case = load("couette", overrides=given)
    assert case.scheme.epsilon == epsilon
    assert Case.from_dict(case.document()).scheme.epsilon == epsilon


def test_a_scheme_without_weights_is_refused_by_its_name_and_not_by_an_epsilon_that_nobody_gave():
    with pytest.raises(HiresxError, match="regularised") as error:
        load("couette", overrides=['time.integrator="implicit"', "scheme.inviscid=regularised"])
    assert "epsilon" not in str(error.value)

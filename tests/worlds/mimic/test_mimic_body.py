"""Bodies follow the anthropometric tables, and impossible ones are refused."""

import pytest

from ludus.core.errors import ConfigError
from ludus.worlds.mimic.body import WALKERS, kind_of, make_body
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import make_walker


def test_default_body_has_the_tables_sizes() -> None:
    body = make_body()
    assert body.thigh.length_m == pytest.approx(0.245 * 1.75)
    assert body.thigh.mass_kg == pytest.approx(7.5)
    assert body.shank.mass_kg == pytest.approx(0.0465 * 75)
    assert body.foot.mass_kg == pytest.approx(0.0145 * 75)
    assert body.thigh.inertia_kg_m2 == pytest.approx(7.5 * (0.323 * 0.245 * 1.75) ** 2)
    assert body.hip_height_m == pytest.approx((0.245 + 0.246 + 0.039) * 1.75)


def test_all_segments_together_weigh_the_body() -> None:
    body = make_body(1.6, 60.0)
    legs = 2 * (body.thigh.mass_kg + body.shank.mass_kg + body.foot.mass_kg)
    assert legs + body.trunk.mass_kg == pytest.approx(60.0)
    assert body.pelvis.mass_kg + body.upper.mass_kg == pytest.approx(body.trunk.mass_kg)


@pytest.mark.parametrize("name", WALKERS)
@pytest.mark.parametrize(("height_m", "mass_kg"), [(1.75, 75.0), (1.3, 32.0), (2.1, 120.0)])
def test_the_model_weighs_what_the_person_does(name: str, height_m: float, mass_kg: float) -> None:
    walker = make_walker(MimicConfig(walker=name, height_m=height_m, mass_kg=mass_kg))  # type: ignore[arg-type]
    assert float(walker.model.body_mass.sum()) == pytest.approx(mass_kg, rel=1e-5)
    assert walker.model.nu == len(walker.joints) == {"walker-8": 8, "walker-13": 13}[name]
    assert walker.model.nq == 7 + len(walker.joints)


@pytest.mark.parametrize(
    ("height_m", "mass_kg", "words"),
    [
        (175.0, 75.0, "height_m must be from 1.2 to 2.2, got 175; heights are in metres"),
        (1.75, 500.0, "mass_kg must be from 30 to 200, got 500"),
        (2.0, 40.0, "body mass index of 10.0; valid: 12 to 50, so 48 to 200 kg"),
        (float("nan"), 75.0, "height_m"),
    ],
)
def test_impossible_bodies_are_refused(height_m: float, mass_kg: float, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_body(height_m, mass_kg)


def test_every_joint_has_its_mirror_image() -> None:
    for joints in WALKERS.values():
        by_name = {joint.name: joint for joint in joints}
        for joint in joints:
            other = by_name[joint.mirror]
            assert other.mirror == joint.name
            assert other.range_deg == joint.range_deg
            assert kind_of(other.name) == kind_of(joint.name)


def test_strength_scales_with_mass_and_setting() -> None:
    weak = make_walker(MimicConfig(strength=0.5))
    usual = make_walker(MimicConfig())
    assert [2 * limit for limit in weak.limits_nm] == pytest.approx(list(usual.limits_nm))
    knee = [joint.name for joint in usual.joints].index("right_knee")
    assert usual.limits_nm[knee] == pytest.approx(1.8 * 75)

"""Parameters on the pages are as they are declared, topics and services as the graph has them."""

import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.params import Parameters

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "topics_and_services.md"
TEXT = PAGE.read_text()
POLICY = ROOT / "config" / "sros2" / "dls_ik_policy.xml"  # compared with the graph elsewhere
OF_EVERY_NODE = {"/rosout", "/parameter_events"}


def script():
    spec = importlib.util.spec_from_file_location("script", ROOT / "docs" / "make_parameters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def allowed(kind, permission):
    groups = ET.parse(POLICY).getroot().iter(f"{kind}s")
    return {e.text for group in groups if group.get(permission) for e in group.iter(kind)}


def test_tables_of_parameters_are_those_of_the_nodes():
    """If not: python docs/make_parameters.py."""
    assert script().page(TEXT) == TEXT


def test_a_missing_table_is_noticed():
    with pytest.raises(SystemExit, match="0 tables of ik_node"):
        script().page(TEXT.replace("parameters of ik_node", ""))


@pytest.mark.parametrize(("way", "permission"), [("in", "subscribe"), ("out", "publish")])
def test_topics_are_those_of_the_policy(way, permission):
    rows = re.findall(r"^\| (`.*`) \| `\w+/msg/\w+` \| (in|out) \|", TEXT, re.MULTILINE)
    listed = {name for cell, at in rows if at == way for name in re.findall(r"`(.+?)`", cell)}
    assert listed == allowed("topic", permission) - OF_EVERY_NODE


def test_services_are_those_of_the_policy():
    rows = re.findall(r"^\| `(.+?)` \| `\w+/srv/\w+` \|", TEXT, re.MULTILINE)
    of_parameters = {name for name in allowed("service", "reply") if "param" in name}
    other = {"~/get_type_description"}
    assert set(rows) == allowed("service", "reply") - of_parameters - other


def flat(values, prefix=""):
    """Nested names as ROS has them: group.left_arm.tip."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def blocks():
    """The parameters of the node in YAML on every page."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            given = yaml.safe_load(text).get("/**", {}).get("ros__parameters")
            if given:
                yield pytest.param(dict(flat(given)), id=page.name)


@pytest.mark.parametrize("given", list(blocks()))
def test_parameters_in_yaml_are_valid(given):
    changed = Parameters().changed(given)
    assert changed != Parameters()

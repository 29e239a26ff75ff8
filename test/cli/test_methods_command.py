"""``dls-ik methods``: every name, and those that are asked for."""

from cli_runner import document, refusal, run

from dls_ik import method_names


def test_every_method_is_listed_and_shown_in_any_width():
    assert [each["name"] for each in document("methods")] == [*method_names()]
    lines = run("methods", columns=60).stdout.splitlines()
    assert max(map(len, lines)) <= 60
    names = {line.split()[0] for line in lines if line and not line.startswith(" ")}
    assert set(method_names()) <= names


def test_methods_that_are_named():
    (found,) = document("methods", "SVF+jc")
    assert found["name"] == "jc+svf"
    assert found["long_name"] == "joint clamping + singular value filtering"
    assert "did you mean ctp?" in refusal("methods", "ctv")

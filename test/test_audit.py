# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/audit: its queries, and the failure without an answer."""

import importlib.util

import pytest
from robots import ROOT

SPEC = importlib.util.spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
audit = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(audit)

FINE = audit.AuditAnswer(fine=("numpy",))
BAD = audit.AuditAnswer(found=("jinja2 2.4.1: CVE-0",))


def test_every_requirements_file_with_pins_is_audited():
    names = {path.name for path in audit.files()}
    assert {"core.txt", "demo.txt", "extras.txt", "ros.txt", "test.txt", "docs.txt"} <= names
    assert "distribution.txt" not in names
    assert "numba==0.68.1" in audit.pins(ROOT / "requirements" / "core.txt")


@pytest.mark.parametrize(
    ("control", "others", "code", "said"),
    [
        (BAD, FINE, 0, "1 without known vulnerabilities, 0 with"),
        (BAD, BAD, 1, "jinja2 2.4.1: CVE-0"),
        (BAD, audit.AuditAnswer(unknown=("numpy",)), 3, "NOT AUDITED"),
        (BAD, audit.AuditAnswer(complaint="no route"), 3, "NOT AUDITED: no route"),
        (FINE, FINE, 3, "NOT AUDITED: the service of vulnerabilities does not answer"),
        (audit.AuditAnswer(complaint="no route"), FINE, 3, "no route"),
    ],
)
def test_audit_without_an_answer_fails(control, others, code, said, monkeypatch, capsys):
    monkeypatch.setattr(
        audit, "of_pins", lambda lines, _: control if lines == [audit.KNOWN_BAD] else others
    )
    monkeypatch.setattr(audit, "run_audit", lambda *_: FINE)
    assert audit.main([]) == code
    assert said in capsys.readouterr().out

"""What is installed is what is asked for."""

import audit_versions
import pytest
from audit_versions import (
    CONSTRAINTS_FILE,
    collect_installed_versions,
    find_forbidden_versions,
    find_unconstrained_versions,
    main,
    read_declared_requirements,
)
from packaging.requirements import Requirement


def test_nothing_that_is_installed_is_forbidden(capsys):
    assert list(find_forbidden_versions()) == []
    assert main([]) == 0


def test_the_constraints_hold_all_that_is_asked_for_and_fit_the_floors():
    lines = [line for line in CONSTRAINTS_FILE.read_text().splitlines() if not line.startswith("#")]
    pinned = {Requirement(line).name: Requirement(line) for line in lines}
    assert all("+" not in line and "@" not in line and "==" in line for line in lines)
    for requirement in read_declared_requirements():
        if requirement.name in pinned:
            (pin,) = pinned[requirement.name].specifier
            assert requirement.specifier.contains(pin.version, prereleases=True), requirement
    assert {"torch", "lightning", "ray", "pytest", "sqlalchemy"} <= pinned.keys() & collect_installed_versions().keys()


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("jinja2", "3.1.4", "jinja2 is 3.1.4, and pyproject.toml asks for >=3.1.6"),
        ("ray", "2.51.1", "asks for >=2.52"),
        ("aiohttp", "3.13.2", "asks for >=3.13.3"),
        ("jsonargparse", "5.0.0", "asks for"),
        ("pytorch-lightning", "2.6.3", "which must not run"),
    ],
)
def test_a_version_that_must_not_run_is_named(monkeypatch, capsys, name, version, words):
    plain = audit_versions.find_installed_version
    monkeypatch.setattr(audit_versions, "find_installed_version", lambda each: version if each == name else plain(each))
    assert main([]) == 1
    assert words in capsys.readouterr().out


def test_what_the_tests_did_not_run_with_is_told(monkeypatch):
    monkeypatch.setattr(audit_versions, "find_installed_version", {"numpy": "2.0.0"}.get)
    assert list(find_unconstrained_versions(["# head", "numpy==2.1.0", "scipy==1.0"])) == [
        "numpy is 2.0.0; the tests ran with 2.1.0."
    ]

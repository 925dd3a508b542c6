"""What torchmetrics gives before it is executed, and that it is itself afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DEFERRED = "from rlcredit.base.deferred_torchmetrics import defer_torchmetrics; defer_torchmetrics(); import sys\n"


def run_python(code, *folders):
    """Return what a fresh process prints."""
    path = os.pathsep.join([*map(str, folders), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def write_package(folder, **modules):
    """Write a package of that name, whose modules are what deferring needs of them unless they are given."""
    needed = {
        "__about__": "__version__ = '9.0'",
        "utilities": "",
        "metric": "Metric = 1",
        "collections": "MetricCollection = 1",
    }
    (folder / "torchmetrics").mkdir()
    for name, code in {**needed, **modules}.items():
        (folder / "torchmetrics" / f"{name}.py").write_text(code)


def test_lightning_gets_its_classes_without_the_metrics():
    code = """
import lightning.pytorch.trainer.connectors.logger_connector.result as result
import lightning.pytorch.core.module as module
import torchmetrics

print(torchmetrics.Metric is result.Metric is module.Metric, issubclass(result._ResultMetric, torchmetrics.Metric))
print(sorted({"torchmetrics.functional", "torchmetrics.classification", "scipy", "transformers"} & sys.modules.keys()))
"""
    assert run_python(DEFERRED + code) == ["True True", "[]"]


def test_asked_for_a_metric_it_is_the_package():
    code = """
import torchmetrics.classification
before = torchmetrics.Metric, torchmetrics.MetricCollection, torchmetrics.classification.Accuracy
print(before == (torchmetrics.Metric, torchmetrics.MetricCollection, torchmetrics.Accuracy))
print(issubclass(torchmetrics.Accuracy, before[0]), torchmetrics is sys.modules["torchmetrics"])
print(*sorted(vars(torchmetrics)))
"""
    *facts, names = run_python(DEFERRED + code)
    assert facts == ["True", "True True"]
    assert [names] == run_python("import torchmetrics.classification; print(*sorted(vars(torchmetrics)))")


@pytest.mark.parametrize(
    "ask",
    [
        "torchmetrics.Accuracy",
        "from torchmetrics import Accuracy",
        "from torchmetrics import *",
        "dir(torchmetrics)",
        "hasattr(torchmetrics, 'no_such_metric')",
    ],
)
def test_asked_for_a_name_that_it_does_not_have_yet_it_is_executed_once(tmp_path, ask):
    init = "from torchmetrics.metric import Metric; print('executed'); Accuracy = 1; __all__ = ['Metric', 'Accuracy']"
    write_package(tmp_path, __init__=init)
    code = f"""
import torchmetrics
print(torchmetrics.Metric, torchmetrics.__version__, type(torchmetrics).__name__)
{ask}
print(torchmetrics.Accuracy, sorted({{"Accuracy", "Metric"}} & {{*dir(torchmetrics)}}), type(torchmetrics).__name__)
print(type(torchmetrics.__spec__.loader).__name__, type(torchmetrics.__loader__).__name__)
"""
    assert run_python(DEFERRED + code, tmp_path) == [
        "1 9.0 _DeferredPackage",
        "executed",
        "1 ['Accuracy', 'Metric'] module",
        "SourceFileLoader SourceFileLoader",
    ]


def test_a_name_that_it_does_not_have_is_no_attribute(tmp_path):
    write_package(tmp_path, __init__="")
    code = """
import torchmetrics
try:
    torchmetrics.no_such_metric
except AttributeError as error:
    print(error)
"""
    assert run_python(DEFERRED + code, tmp_path) == ["module 'torchmetrics' has no attribute 'no_such_metric'"]


@pytest.mark.parametrize("metric", ["from torchmetrics import new_helper", "raise ImportError"])
def test_a_version_that_is_built_otherwise_is_imported_whole(tmp_path, metric):
    write_package(tmp_path, __init__="new_helper = 1; Metric = 'its own'", metric=f"{metric}; Metric = 1")
    code = "import torchmetrics; print(torchmetrics.Metric, hasattr(torchmetrics, 'x'), type(torchmetrics).__name__)"
    assert run_python(DEFERRED + code, tmp_path) == ["its own False module"]


def test_a_package_that_fails_when_it_is_executed_says_why_each_time(tmp_path):
    write_package(tmp_path, __init__="import missing_library")
    code = """
import torchmetrics
for _ in range(2):
    try:
        torchmetrics.Accuracy
    except ImportError as error:
        print(error)
"""
    assert run_python(DEFERRED + code, tmp_path) == ["No module named 'missing_library'"] * 2


def test_without_torchmetrics_its_import_fails_as_ever():
    code = """
sys.path[:] = [path for path in sys.path if "site-packages" not in path]
try:
    import torchmetrics
except ModuleNotFoundError as error:
    print(error)
"""
    assert run_python(DEFERRED + code) == ["No module named 'torchmetrics'"]

"""What a tracker refuses for good, and what only takes its time."""

import http.server
import threading
import time

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException, RestException
from mlflow.protos.databricks_pb2 import UNAUTHENTICATED

from rlcredit.record.delivery import DeliveryThread, RecordDelivery
from rlcredit.record.destination import MLflowDestination
from rlcredit.record.logger import RunRecord
from rlcredit.record.tracker_refusals import TrackerRefusal, find_tracker_refusal
from rlcredit.run_folder.layout import RunFolder
from tests.rlcredit.record.test_delivery import address, folder, history, runs, told  # noqa: F401


def to(address, **more):  # noqa: F811
    return MLflowDestination(address, "experiment", "grpo-seed0", {}, **more)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MlflowException("x", error_code=UNAUTHENTICATED), "MLFLOW_TRACKING_PASSWORD"),
        (RestException({"error_code": "PERMISSION_DENIED"}), "--experiment"),
        (RestException({"error_code": "INVALID_PARAMETER_VALUE"}), "INVALID_PARAMETER_VALUE"),
        (RestException({"error_code": "RESOURCE_DOES_NOT_EXIST"}), "--mlflow"),
        (RestException({"detail": "Not authenticated"}), "MLFLOW_TRACKING_USERNAME"),
        (TrackerRefusal("it is so"), "it is so"),
    ],
)
def test_a_refusal_for_good_names_what_to_do(error, words):
    assert words in str(find_tracker_refusal(error))


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError(),
        MlflowException("the server is away"),
        RestException({"error_code": "REQUEST_LIMIT_EXCEEDED"}),
        RestException({"error_code": "RESOURCE_ALREADY_EXISTS"}),  # two runs have made one experiment
    ],
)
def test_what_may_pass_is_no_refusal(error):
    assert find_tracker_refusal(error) is None


def test_a_deleted_experiment_is_named_and_the_run_does_not_wait(folder, address, capsys):  # noqa: F811
    client = MlflowClient(address)
    client.delete_experiment(client.create_experiment("experiment"))
    told(folder, 2)
    delivery_thread = DeliveryThread(RecordDelivery(folder, to(address)))
    delivery_thread.start()
    delivery_thread.news.set()
    began = time.monotonic()
    assert not delivery_thread.close("FINISHED", 60)
    assert time.monotonic() - began < 20
    err = capsys.readouterr().err
    assert "`experiment` has been deleted: restore it (mlflow experiments restore --experiment-id 1)" in err
    assert not delivery_thread.is_alive() or not delivery_thread.join(5)


def test_a_run_that_is_deleted_on_the_way_is_made_again(folder, address):  # noqa: F811
    record, goal = told(folder, 2), to(address)
    delivery = RecordDelivery(folder, goal)
    delivery.send_new_entries()
    MlflowClient(address).delete_run(goal.run_id)
    record.log_metrics({"train/loss": 2.0}, 2)
    delivery.send_new_entries()
    assert history(address) == [(0, 0.0), (1, 1.0), (2, 2.0)]


class Busy(http.server.BaseHTTPRequestHandler):
    """A server that says: not now, in an hour."""

    def do_GET(self):
        self.send_response(429)
        self.send_header("Retry-After", "3600")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def test_a_server_that_says_in_an_hour_is_not_waited_for(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        folder = RunFolder(tmp_path / "run")
        RunRecord(folder).log_metrics({"a": 1.0}, 0)
        began = time.monotonic()
        with pytest.raises(MlflowException):
            RecordDelivery(folder, to(f"http://127.0.0.1:{server.server_address[1]}")).send_new_entries()
        assert time.monotonic() - began < 20
        server.shutdown()

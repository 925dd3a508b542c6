"""Send the record to MLflow in a thread of its own, so that no step waits for MLflow."""

import threading
import time
import uuid
from collections.abc import Iterator

from rlcredit.base.messages import print_message, rearm_warning, warn_once
from rlcredit.record.destination import MLflowDestination
from rlcredit.record.journal import Entry, read_journal_entries
from rlcredit.record.mlflow_run import METRICS_PER_REQUEST, MLflowRun, Point, clean_mlflow_name
from rlcredit.record.tracker_refusals import TrackerRefusal, describe_tracker_trouble, find_tracker_refusal
from rlcredit.run_folder.layout import RunFolder

RETRY_PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds before MLflow is tried again, after the first failure, the second, and so on."""

TROUBLED_PATIENCE = 8.0
"""Seconds that a run waits at its end for an MLflow that has failed."""

MAX_SILENCE = 30.0
"""Seconds that a run waits at its end for an MLflow from which nothing has come in that time."""

DELIVERY_WARNING = "delivery"

EPOCH_METRIC = "epoch"
"""A metric that Lightning adds to every step; it says how often a run has gone through its questions, and hides others.
"""


class RecordDelivery:
    """Send the record of a run to MLflow, each point once, and its files.

    A point is a metric at a step. What MLflow holds already is not sent again. If it holds points that the record does
    not, the run was killed and has gone back to a checkpoint before them: a new MLflow run takes the whole record, and
    replaces the old one.

    Args:
        folder: Folder of the run.
        destination: Destination, updated and saved as things arrive.

    """

    def __init__(self, folder: RunFolder, destination: MLflowDestination) -> None:
        self.folder, self.to = folder, destination
        self.store: MLflowRun | None = None
        self.held: set[Point] = set()
        self.place = 0
        self.moved = time.monotonic()

    def send_new_entries(self) -> None:
        """Send what has not arrived yet; errors of MLflow are raised, and the next call goes on from there.

        Raises:
            TrackerRefusal: it will never be taken like this, neither by the run in MLflow nor by a new one.

        """
        was_connected = self.store is not None
        try:
            self._send_new_entries()
        except Exception as error:
            if (reason := find_tracker_refusal(error)) is None:
                raise
            self.store, self.place = None, 0  # somebody may have deleted the run: look again what there is
            if not was_connected:
                raise TrackerRefusal(reason) from error
            self.send_new_entries()

    def _send_new_entries(self) -> None:
        if self.store is None:
            self.store = self._open_mlflow_run()
        points: list[tuple[str, float, int, int]] = []
        waiting: set[Point] = set()
        place = self.place
        for entry, place in read_journal_entries(self.folder.record, self.place):
            points += self._select_new_points(entry, waiting)
            if len(points) >= METRICS_PER_REQUEST or "metrics" not in entry:
                self._send(points, entry, place)
                points, self.place = [], place  # only now: what fails is read again
        self._send(points, {}, place)
        self.place = place

    def end_run(self, status: str) -> None:
        """Report how the run ended, once everything has arrived."""
        assert self.store is not None
        self.store.end_run(status)

    def _open_mlflow_run(self) -> MLflowRun:
        store = MLflowRun(self.to)
        points, former = store.list_points(), self.to.run_id
        self._note_arrival()
        is_ahead = points is not None and not points <= set(self._list_recorded_points())
        if is_ahead and former is not None:
            self.to.removes.append(former)
        if points is None or is_ahead:
            if former is not None or self.to.key is None:
                self.to.run_id, self.to.key = None, uuid.uuid4().hex
            self._save_destination()  # if the id of the new run is lost, it is found by this key
            self.to.run_id, self.to.arrived = store.create_run(), 0
            self._save_destination()
        else:
            store.mark_running()
        for run_ids, finish in ((self.to.removes, store.delete_run), (self.to.closes, store.mark_killed)):
            for run_id in list(run_ids):
                finish(run_id)
                run_ids.remove(run_id)
        self._save_destination()
        self.held = points if points is not None and not is_ahead else set()
        return store

    def _list_recorded_points(self) -> Iterator[Point]:
        for entry, _ in read_journal_entries(self.folder.record):
            yield from ((clean_mlflow_name(name), entry["step"]) for name in entry.get("metrics", {}))

    def _select_new_points(self, entry: Entry, waiting: set[Point]) -> list[tuple[str, float, int, int]]:
        """Return the points of a line that MLflow does not hold yet and that are not in ``waiting``; add them there."""
        points = []
        for name, value in entry.get("metrics", {}).items():
            if name == EPOCH_METRIC:
                continue
            point = (clean_mlflow_name(name), entry["step"])
            if point not in self.held and point not in waiting:
                waiting.add(point)
                points.append((point[0], value, entry["time"], entry["step"]))
        return points

    def _send(self, points: list[tuple[str, float, int, int]], entry: Entry, place: int) -> None:
        assert self.store is not None
        if points:
            self.store.add_metrics(points)
            self._note_arrival()
            self.held.update((name, step) for name, _, _, step in points)
        if "parameters" in entry:
            self.store.log_parameters(entry["parameters"])
        if "tags" in entry:
            self.store.set_tags(entry["tags"])
        if place > self.to.arrived:
            path = self.folder.path / entry.get("file", entry.get("table", ""))
            if "file" in entry and path.exists():
                self.store.upload_file(path, entry["to"])
            elif "table" in entry and path.exists():
                self.store.upload_table(path, entry["table"])
            self.to.arrived = place
            self._note_arrival()
            self._save_destination()

    def _note_arrival(self) -> None:
        """Record that something has just arrived."""
        self.moved = time.monotonic()

    def _save_destination(self) -> None:
        try:
            self.to.save(self.folder.tracking)
        except OSError as error:
            warn_once(f"{self.folder.tracking} cannot be written ({error}); files that have arrived may be sent again.")


class DeliveryThread(threading.Thread):
    """Deliver while a run goes on.

    Args:
        delivery: Delivery of the run's record.

    """

    def __init__(self, delivery: RecordDelivery) -> None:
        super().__init__(name="delivery", daemon=True)
        self.delivery = delivery
        self.news, self.done = threading.Event(), threading.Event()
        self.status: str | None = None
        self.trouble: str | None = None
        self.refused = False

    def run(self) -> None:
        """Deliver what is new until the run has ended and everything has arrived."""
        failures = 0
        while True:
            self.news.wait()
            self.news.clear()
            status = self.status
            try:
                self.delivery.send_new_entries()
                if status is not None:
                    self.delivery.end_run(status)
                    self.done.set()
                    return
            except TrackerRefusal as refused:
                self._give_up(refused)
                return
            except Exception as error:  # noqa: BLE001  (whatever a tracker or its database may raise, training goes on)
                self._report_failure(error)
                self._pause_delivery(RETRY_PAUSES[min(failures, len(RETRY_PAUSES) - 1)])
                failures += 1
            else:
                if failures:
                    print_message(
                        f"MLflow at {self.delivery.to.shown_address} accepts the record again; nothing is missing."
                    )
                    rearm_warning(DELIVERY_WARNING)
                failures, self.trouble = 0, None

    def close(self, status: str, patience: float) -> bool:
        """Report how the run ended and wait, shorter if MLflow fails; return whether everything has arrived."""
        self.status = status
        self.news.set()
        deadline, began = time.monotonic() + patience, time.monotonic()
        while not (self.done.wait(0.1) or self.refused) and time.monotonic() < deadline:
            silent = time.monotonic() - max(began, self.delivery.moved)
            if silent > MAX_SILENCE or (self.trouble and time.monotonic() - began > TROUBLED_PATIENCE):
                break
        return self.done.is_set()

    def _give_up(self, refusal: TrackerRefusal) -> None:
        record = self.delivery.folder.record
        print_message(
            f"warning: MLflow at {self.delivery.to.shown_address} refuses this run: {refusal}. "
            f"The run goes on; {record} keeps everything."
        )
        self.refused = True

    def _report_failure(self, error: Exception) -> None:
        self.trouble = describe_tracker_trouble(error)
        record = self.delivery.folder.record
        warn_once(
            f"MLflow at {self.delivery.to.shown_address} does not accept the record of this run ({self.trouble}). "
            f"The run goes on; {record} keeps everything and is delivered as soon as it can be.",
            DELIVERY_WARNING,
        )

    def _pause_delivery(self, pause: float) -> None:
        """Wait before the next attempt, but not once the run has ended."""
        deadline = time.monotonic() + pause
        while time.monotonic() < deadline and self.status is None:
            time.sleep(0.1)
        if self.status is not None:
            time.sleep(0.5)
        self.news.set()

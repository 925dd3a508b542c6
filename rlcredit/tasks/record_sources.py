"""Sources of records: a file, a folder, or a repository on the hub."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from rlcredit.base.files import suggest_path
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.tasks import file_records
from rlcredit.tasks.file_records import Located

TEXT_READERS = {
    ".jsonl": file_records.read_json_records,
    ".ndjson": file_records.read_json_records,
    ".json": file_records.read_json_records,
    ".csv": file_records.read_csv_records,
    ".tsv": file_records.read_csv_records,
}
"""How files of text are read, by their suffixes."""

PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")
"""Endings of compressed files, which must be unpacked first."""

ROWS_AT_ONCE = 1000
"""Rows that are converted to Python types at a time."""

LOAD_ERRORS = (ValueError, TypeError, LookupError, AttributeError, OSError, RuntimeError, ArithmeticError, ImportError)
"""What `datasets` raises, beside its own errors, where a folder or repository holds nothing that it can read."""

_HUB_SECONDS = 20.0
"""Seconds that the hub has to say whether it has a repository."""

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_END = object()


def _read_parquet_records(path: Path) -> Located:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            yield from _number_rows(pq.ParquetFile(file).iter_batches(ROWS_AT_ONCE), str(path))
    except pa.ArrowException as error:
        raise ValueError(
            f"{shorten_name(path)} is not a readable Parquet file ({_take_first_line(error)[:-1]})."
        ) from None


def _number_rows(batches: Iterable[Any], place: str) -> Located:
    """Yield the rows of tables or batches of Arrow as records."""
    records = chain.from_iterable(batch.to_pylist() for batch in batches)
    yield from ((f"{place}, row {row}", record) for row, record in enumerate(records))


FILE_READERS = {**TEXT_READERS, ".parquet": _read_parquet_records}
"""How any file is read."""


class RecordSource(NamedTuple):
    """The place of some records.

    Attributes:
        path: File (JSONL, JSON, CSV, TSV, Parquet), folder (saved by ``save_to_disk``, or of data files), or repository
            on the hub.
        split: Split of the data; the only one if None. A file is one split, ``train``.
        name: Configuration inside a folder or repository; of several, records are taken in turn.
        revision: Commit or tag of a repository.

    """

    path: str
    split: str | None = None
    name: str | Sequence[str] | None = None
    revision: str | None = None

    @property
    def suffix(self) -> str:
        """Format of a file; None for a folder or repository."""
        return Path(self.path).suffix.lower()

    @property
    def is_text_file(self) -> bool:
        """Whether it is a text file, which a person can correct."""
        return self.suffix in TEXT_READERS

    @property
    def is_perhaps_on_hub(self) -> bool:
        """Whether it may be on the hub: nothing local has its name, and it does not look like a file name."""
        return self.suffix not in FILE_READERS and not os.path.exists(self.path) and bool(_HUB_ID.fullmatch(self.path))

    def __str__(self) -> str:
        """Name it in messages."""
        return (
            shorten_name(self.path)
            if self.split is None or self.suffix in FILE_READERS
            else f"{shorten_name(self.path)}, {self.split}"
        )

    def read_records(self) -> Located:
        """Yield records, each with its place.

        Raises:
            ValueError: there are none; with what there is instead.

        """
        path = Path(self.path)
        if self.suffix in FILE_READERS:
            if self.split not in (None, "train"):
                raise ValueError(
                    f"data: {shorten_name(path)} is one file, whose only split is `train`, not `{self.split}`. "
                    "A file of held-out questions goes into data.init_args.validation."
                )
            if self.name is not None:
                raise ValueError(f"data.init_args.name: {shorten_name(path)} is one file and has no configurations.")
            try:
                yield from FILE_READERS[self.suffix](path)
            except OSError as error:
                reason = f"{shorten_name(path)} cannot be read ({error.strerror or error})"
                raise ValueError(f"data.init_args.path: {reason}.{suggest_path(path)}") from None
        else:
            names = [self.name] if self.name is None or isinstance(self.name, str) else self.name
            yield from _interleave_records([self._read_dataset_rows(name) for name in names])

    def _read_dataset_rows(self, name: str | None) -> Located:
        label = self.path if name is None else f"{self.path}, {name}"
        dataset = _load_split(self, name)
        split = getattr(dataset, "split", None) or self.split
        yield from _number_rows(dataset.with_format("arrow").iter(batch_size=ROWS_AT_ONCE), f"{label}, split {split}")


def _interleave_records(parts: Sequence[Located]) -> Located:
    for row in zip_longest(*parts, fillvalue=_END):
        yield from (record for record in row if record is not _END)  # pyright: ignore[reportReturnType]


def _load_split(source: RecordSource, name: str | None) -> Any:
    """Return one split as `datasets` has it.

    Raises:
        ValueError: in one sentence, with what was not found.

    """
    from datasets import DatasetDict  # noqa: PLC0415
    from datasets.exceptions import DatasetsError  # noqa: PLC0415

    folder = Path(source.path)
    local = os.path.isdir(folder)  # false also for a name that no file can have
    if os.path.isfile(folder):
        way = "Unpack it. Those" if folder.suffix.lower() in PACKED_SUFFIXES else "Those"
        raise ValueError(
            f"data.init_args.path: {shorten_name(source.path)} is a file of unknown format. "
            f"{way} that are read end in {', '.join(FILE_READERS)}."
        )
    if not local and not _HUB_ID.fullmatch(source.path):
        raise ValueError(f"data.init_args.path: there is no file or folder {shorten_name(source.path)}.")
    try:
        dataset = _load_dataset(str(folder.resolve()) if local else source.path, name, source)
    except (*LOAD_ERRORS, DatasetsError) as error:
        place = "folder" if local else "hub id (there is no such file or folder)"
        raise ValueError(
            f"data.init_args.path: the {place} {shorten_name(source.path)} cannot be read: {_take_first_line(error)}"
        ) from None
    splits = dict(dataset) if isinstance(dataset, DatasetDict) else {str(dataset.split or source.split): dataset}
    if source.split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if source.split is None or source.split not in splits:
        request = "Name one split of" if source.split is None else f"There is no split `{source.split}` in"
        raise ValueError(
            f"data: {request} {shorten_name(source.path)}: it has {', '.join(f'`{split}`' for split in splits)}."
        )
    return splits[source.split]


def _load_dataset(path: str, name: str | None, source: RecordSource) -> Any:
    from datasets import load_dataset, load_from_disk  # noqa: PLC0415

    if any((Path(path) / mark).is_file() for mark in ("state.json", "dataset_dict.json")):
        return load_from_disk(path)
    with contextlib.nullcontext() if os.path.isdir(path) else _ask_hub_once(path):
        return load_dataset(path, name, split=source.split, revision=source.revision)


@contextlib.contextmanager
def _ask_hub_once(path: str) -> Iterator[None]:
    """Ask the hub for a repository once; if it cannot be reached, only copies are looked for, which takes no time.

    Without this `datasets` asks for half a minute, and says so on the screen.
    """
    from datasets import config  # noqa: PLC0415
    from huggingface_hub import HfApi, constants  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    offline = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    try:
        if not any(offline):
            HfApi().dataset_info(path, timeout=_HUB_SECONDS)
    except Exception as error:  # noqa: BLE001  (whatever the client raises where there is no way to the hub)
        has_answered = isinstance(error, HfHubHTTPError)  # and says why when it is asked for the data
        constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = not has_answered
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = offline


def _take_first_line(error: Exception) -> str:
    """Return the first line of a library's message as a sentence."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"{text.rstrip('.')}."

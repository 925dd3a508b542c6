"""Addresses that hold a password: a configuration is written to files, logs and MLflow, so none may be in it."""

import re
from collections.abc import Mapping
from typing import Any

_AS_USER = re.compile(r"(?<=://)([^\s/?#@:\[]*):(?!\d{1,5}(?:[/?#\s]|$))\S+@")
_AS_QUERY = re.compile(r"(?i)([?&;][\w.-]*(?:password|passwd|pwd|passphrase|secret|token|api_?key)=)[^&;\s'\"]+")

PASSWORD_REPAIR = (
    "holds a password, which files, logs and MLflow would show. Remove it, or set MLFLOW_TRACKING_URI and --mlflow env "
    "(tracking_uri: null)."
)


def redact_passwords(text: str) -> str:
    """Return a text without the passwords of the addresses in it.

    Example:
        >>> redact_passwords("postgresql://ann:secret@host/runs is closed")
        'postgresql://ann:***@host/runs is closed'
        >>> redact_passwords("http://host:5000/?token=abc")
        'http://host:5000/?token=***'

    """
    redacted_text = _AS_USER.sub(r"\1:***@", text)
    return _AS_QUERY.sub(r"\1***", redacted_text) if "://" in text else redacted_text


def refuse_passwords(config: Any, key: str = "") -> None:
    """Refuse a configuration in which an address holds a password, at whatever place.

    Args:
        config: Configuration of mappings, lists and values.
        key: Dotted key of the place where they stand.

    Raises:
        ValueError: names the place and the repair, not the password.

    """
    if isinstance(config, str) and redact_passwords(config) != config:
        raise ValueError(f"{key}: the address {PASSWORD_REPAIR}" if key else f"An address {PASSWORD_REPAIR}")
    if isinstance(config, Mapping):
        for name, value in config.items():
            refuse_passwords(str(name), key)
            refuse_passwords(value, f"{key}.{name}".lstrip("."))
    elif isinstance(config, list | tuple):
        for place, value in enumerate(config):
            refuse_passwords(value, f"{key}[{place}]")

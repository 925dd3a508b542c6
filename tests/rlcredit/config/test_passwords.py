"""Addresses with a password are refused at every place, and never printed."""

import pytest

from rlcredit.config.passwords import redact_passwords, refuse_passwords


@pytest.mark.parametrize(
    "address",
    [
        "http://user:SECRET@host:5000",
        "postgresql://u:SECRET@h/db",
        "mysql+pymysql://:SECRET@h/db",
        "http://u:SEC/RET@h",
        "https://h/?password=SECRET",
        "https://h/path?a=1&token=SECRET",
        "postgresql://h/db?user=u&sslpassword=SECRET",
        "http://u:12345@h",
    ],
)
def test_a_password_is_found_and_hidden(address):
    with pytest.raises(ValueError, match=r"^trainer\.logger\[0\]\.uri: the address holds a password") as refused:
        refuse_passwords({"trainer": {"logger": [{"uri": address}]}})
    for text in (redact_passwords(f"cannot open {address} today"), str(refused.value)):
        assert "SECRET" not in text
        assert "RET@" not in text
        assert "12345" not in text


@pytest.mark.parametrize(
    "value",
    ["sqlite:///mlflow.db", "http://user@host:5000", "http://[::1]:5000/a@b", "http://host:5000/x@y", "a:b@c", "5:3@x"],
)
def test_other_addresses_are_left_alone(value):
    refuse_passwords({"tracking_uri": value, "numbers": [1, None, 0.5]})
    assert redact_passwords(value) == value

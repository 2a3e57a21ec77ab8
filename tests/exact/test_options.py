"""Options of a test are checked once, when they are made."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from trackperm.choices import Missing
from trackperm.errors import InputError
from trackperm.exact import TestOptions
from trackperm.exact.options import bytes_of, require_choice


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": "more"}, "`alternative` is 'more'; expected one of `two-sided`, `less`, `greater`"),
        ({"alpha": 0.0}, "`alpha` is 0.0; expected a number between 0 and 1"),
        ({"alpha": 5e-324}, "`alpha` is 5e-324; expected a number between 0 and 1"),
        ({"alpha": float("nan")}, "`alpha` is nan; expected a number between 0 and 1"),
        ({"method": "fft"}, "`method` is 'fft'; expected one of `auto`, `binomial`"),
        ({"n_samples": 0}, "`n_samples` is 0; expected an integer of at least 1"),
        ({"n_samples": 1.5}, "`n_samples` is 1.5; expected an integer of at least 1"),
        ({"seed": -1}, "`seed` is -1; expected an integer of at least 0"),
        ({"exceedances": 0}, "`exceedances` is 0; expected an integer of at least 1"),
        ({"n_samples": True}, "`n_samples` is True; expected an integer of at least 1"),
        ({"mid_p": "no"}, "`mid_p` is 'no'; expected True or False"),
        ({"exceedances": 3, "method": "dp"}, '`exceedances` does not apply to `method="dp"`'),
        ({"mid_p": True, "method": "monte-carlo"}, "the mid-p-value needs an exact method"),
    ],
)
def test_values_that_cannot_be_used_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(InputError) as caught:
        TestOptions(**options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("size", "n_bytes"),
    [(2**24, 2**24), ("16777216", 2**24), ("512MB", 512 * 10**6), ("2GiB", 2**31), ("1.5 GiB", 3 * 2**29)],
)
def test_sizes_of_memory(size: int | str, n_bytes: int) -> None:
    assert bytes_of(size) == n_bytes


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("much", '`memory_budget="much"` is not a size; expected bytes, or a size such as 512MB or 2GiB'),
        ("2TB", "is not a size"),
        ("-1", "is not a size"),
        ("1kB", "is too little; expected at least 1MiB"),
    ],
)
def test_what_is_no_size_of_memory(size: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        bytes_of(size)
    assert said in str(caught.value)


def test_the_alternative_of_the_statistic_is_the_default():
    assert TestOptions().tested == "two-sided"
    assert TestOptions().with_default("less").tested == "less"
    assert not TestOptions().with_default("less").two_sided
    assert TestOptions(alternative="greater").with_default("less").tested == "greater"


@pytest.mark.parametrize(
    ("value", "hint"),
    [("dorp", "Did you mean `drop`?"), ("guess", None), (None, None), (3, None), (["drop"], None)],
)
def test_a_value_that_is_none_of_the_choices(value: object, hint: str | None) -> None:
    with pytest.raises(InputError, match=r"`missing` is .*; expected one of `error`, `drop`") as caught:
        require_choice("missing", value, get_args(Missing))
    assert caught.value.hint == hint

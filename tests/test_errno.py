"""Error numbers, their names and their words."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.wire import errno


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "SLURM_SUCCESS"),
        (-1, "SLURM_ERROR"),
        (1, "EPERM"),
        (114, "EALREADY"),
        (1011, "SLURM_PLUGIN_NAME_INVALID"),
        (1900, "SLURM_NO_CHANGE_IN_DATA"),
        (2000, "ESLURM_INVALID_PARTITION_NAME"),
        (2006, "ESLURM_INVALID_NODE_COUNT"),
        (2022, "ESLURM_INTERCONNECT_FAILURE"),
        (2036, "ESLURM_NOT_SUPPORTED"),
        (2059, "ESLURM_PORTS_BUSY"),
        (2062, "ESLURM_NO_STEPS"),
        (2079, "ESLURM_INTERCONNECT_BUSY"),
        (2094, "ESLURM_INVALID_BURST_BUFFER_REQUEST"),
        (2100, "ESLURM_BURST_BUFFER_WAIT"),
        (4003, "ESLURMD_INVALID_ACCT_FREQ"),
        (4022, "ESLURMD_PROLOG_FAILED"),
        (4029, "ESLURMD_STEP_NOTSUSPENDED"),
        (4100, "ESCRIPT_CHDIR_FAILED"),
    ],
)
def test_numbers_bear_slurms_names(number: int, name: str) -> None:
    """A trace names an error as Slurm's header does, and the constant holds its number."""
    assert errno.errno_name(number) == name
    assert errno.errno_number(name) == number
    assert getattr(errno, name) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (-1, "Unspecified error"),
        (1011, "Plugin initialization failed"),
        (2002, "Access/permission denied"),
        (2010, "Invalid user id"),
        (2011, "Duplicate job id"),
        (2017, "Invalid job id specified"),
        (2021, "Job/step already completing or completed"),
        (2022, "Error configuring interconnect"),
        (2024, "Job is pending execution"),
        (2028, "Invalid node state specified"),
        (2036, "Requested operation not supported on this system"),
        (2037, "Requested operation is presently disabled"),
        (2077, "Job is current suspended, requested operation disabled"),
        (2088, "Job is not finished"),
        (2094, "Burst Buffer request invalid"),
        (4022, "Job prolog failed"),
        (4027, "Job step not running"),
        (2, "No such file or directory"),
        (2200, "Unknown error 2200"),
    ],
)
def test_texts_are_the_recorded_ones(number: int, text: str) -> None:
    """Commands print these words; scripts of users look for them."""
    assert errno.slurm_strerror(number) == text


def test_every_named_number_says_something_readable() -> None:
    """A number without a text of its own is described by its name, without its prefix."""
    assert errno.slurm_strerror(errno.ESLURM_INVALID_WCKEY) == "Invalid wckey"
    for number in range(-1, 7010):
        text = errno.slurm_strerror(number)
        assert text
        assert "_" not in text
        assert (errno.errno_name(number) == str(number)) == text.startswith("Unknown error")


@settings(derandomize=True, deadline=None)
@given(st.integers(min_value=-(2**31), max_value=2**31 - 1))
def test_a_name_leads_back_to_its_number(number: int) -> None:
    """Names and numbers are one to one, unknown numbers being their own names."""
    assert errno.errno_number(errno.errno_name(number)) == number
    assert errno.errno_number(number) == number


def test_numbers_of_the_switch_range_have_no_name() -> None:
    """3000 to 3099 belong to the plugin; the bounds are names for a range, not for an error."""
    assert errno.errno_name(errno.ESLURM_SWITCH_MIN) == "3000"
    assert errno.errno_number("ESLURM_SWITCH_MAX") == 3099


def test_old_names_are_understood() -> None:
    """A name of an earlier release gives the same number, printed with today's name."""
    assert errno.errno_number("ESLURM_TOO_MANY_REQUESTED_NODES") == 2006
    assert errno.errno_number("SLURM_FAILURE") == -1


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("ESLURM_INTERCONECT_FAILURE", "ESLURM_INTERCONNECT_FAILURE"),
        ("eslurm_disabled", "ESLURM_DISABLED"),
        ("", "EPERM or 1"),
        ("12.5", "EPERM or 1"),
        ("99999999999", "EPERM or 1"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong: str, hint: str) -> None:
    """A misspelt errno in a scenario is a user's mistake: say what would do."""
    with pytest.raises(ValueError, match=hint):
        errno.errno_number(wrong)


def test_numbers_beyond_32_bits_are_refused() -> None:
    """An error number travels in 32 bits."""
    with pytest.raises(ValueError, match="32 bits"):
        errno.errno_number(2**31)


def test_slurm_error_carries_number_and_message() -> None:
    """What is raised in a plugin arrives whole: also from another process."""
    plain = errno.SlurmError(errno.ESLURM_DISABLED)
    told = errno.SlurmError(errno.ESLURM_DISABLED, "not now")
    assert (plain.errno, plain.message) == (2037, "")
    assert str(plain) == "Requested operation is presently disabled (ESLURM_DISABLED)"
    assert str(told) == "not now (ESLURM_DISABLED)"
    copied = pickle.loads(pickle.dumps(told))
    assert (copied.errno, copied.message) == (2037, "not now")


def test_slurm_error_without_a_number_is_a_mistake() -> None:
    """Forgetting the number is the plugin's bug, not a simulated failure."""
    with pytest.raises(TypeError, match="error number first"):
        errno.SlurmError("broken")  # type: ignore[arg-type]

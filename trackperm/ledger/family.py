"""Test families of a run or an experiment: all logged comparisons on a test set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trackperm.comparison.argument_types import require_types
from trackperm.errors import InputError
from trackperm.ledger.entries import TestFamily, families
from trackperm.trackers.base import Tracker
from trackperm.trackers.opened import comparison_or_run, opened
from trackperm.trackers.publication import TEST_SET_TAG, LoggedComparison
from trackperm.trackers.references import TrackedRun, is_same_run, without_part


def family(
    run: str | Path | TrackedRun | None = None,
    *,
    experiment: str | None = None,
    test_set: str | None = None,
    tracking_uri: str | None = None,
) -> list[TestFamily]:
    """Return the logged comparisons on a test set in order, to adjust their p-values for each other.

    Nothing is computed again, and nothing is logged. To correct statistics and slices of one pair of runs,
    use ``correction`` of :func:`trackperm.compare`; to compare many runs at once, use
    :func:`trackperm.leaderboard`.

    Parameters
    ----------
    run : str, Path or TrackedRun, optional
        A logged comparison, or a run that was compared; its families are returned.
    experiment : str, optional
        ``mlflow:EXPERIMENT`` or ``wandb:ENTITY/PROJECT``, instead of a run; all its families are returned.
    test_set : str, optional
        First hexadecimal digits of the digest of a test set; only its family is returned.
    tracking_uri : str, optional
        Tracking server or store; by default as the tracker decides.

    Returns
    -------
    list of TestFamily
        One family per test set, in the order of their first comparisons. ``adjusted(method)`` and ``spent()``
        return decimal logarithms of adjusted p-values by the number of the comparison; ``to_dict(method)``
        returns JSON values.

    Raises
    ------
    InputError
        If not exactly one of `run` and `experiment` is given, it is not in a tracker, or no comparison with a
        test set is logged for it.
    TrackerError
        If the tracker cannot be reached or refuses.

    Examples
    --------
    ``trackperm.family(experiment="mlflow:digits")[0].adjusted("holm")`` returns the adjusted p-values of the
    first test set. A file has no families, because nothing is logged for it:

    >>> trackperm.family("candidate.parquet")
    Traceback (most recent call last):
        ...
    trackperm.errors.InputError: `candidate.parquet` names no tracker
    <BLANKLINE>
    Hint: `mlflow:RUN_ID` or `wandb:ENTITY/PROJECT/RUN`.
    """
    require_types(experiment=experiment, test_set=test_set, tracking_uri=tracking_uri)
    if (run is None) == (experiment is None):
        raise InputError(
            "expected one run, or `--experiment`",
            hint="`trackperm family mlflow:RUN_ID`, or `trackperm family --experiment mlflow:EXPERIMENT`.",
        )
    if run is not None:
        tracker, found = _of_run(run, tracking_uri)
    else:
        tracker, found = _of_experiment(experiment or "", tracking_uri)
    wanted = [each.with_pairs(tracker) for each in found if each.test_set.startswith(test_set or "")]
    if not wanted:
        place = experiment if run is None else run.reference if isinstance(run, TrackedRun) else run
        raise InputError(
            f"no comparison {f'on the test set `{test_set}`' if test_set else 'with a test set'} is logged"
            f" for `{place}`",
            hint="`trackperm compare` logs one if the candidate is in a tracker; in Python, `trackperm.log`.",
        )
    return wanted


def _of_experiment(experiment: str, tracking_uri: str | None) -> tuple[Tracker, Iterable[TestFamily]]:
    tracker, container = opened(experiment, tracking_uri, hint="`--experiment mlflow:EXPERIMENT`.")
    return tracker, families(tracker.comparisons(container))


def _of_run(run: str | Path | TrackedRun, tracking_uri: str | None) -> tuple[Tracker, Iterable[TestFamily]]:
    """Return the families of a comparison or run, among the comparisons of its experiment."""
    hint = "`mlflow:RUN_ID` or `wandb:ENTITY/PROJECT/RUN`."
    tracker, locator = opened(run, tracking_uri, hint=hint)
    found = comparison_or_run(tracker, locator)
    if isinstance(found, LoggedComparison):
        test_set = found.tags.get(TEST_SET_TAG, "")
        listed = families(tracker.comparisons(found.run, test_set))
        return tracker, [each for each in listed if each.test_set == test_set]
    reference = str(found.reference)
    listed = families(tracker.comparisons(found))
    return tracker, [each for each in listed if _names(each, reference, tracker)]


def _names(found: TestFamily, reference: str, tracker: Tracker) -> bool:
    """Whether a comparison of a family, or a pair of one of its leaderboards, has the run."""
    tags = (entry.tag(role) for entry in found.entries for role in ("baseline", "candidate"))
    if any(is_same_run(without_part(logged), reference) for logged in tags):
        return True
    pairs = (pair for entry in found.with_pairs(tracker).entries for pair in entry.pairs)
    runs = (run for pair in pairs for run in (pair.baseline, pair.candidate))
    return any(is_same_run(without_part(run), reference) for run in runs)

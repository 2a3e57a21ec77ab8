"""What the name of a statistic or metric says about its direction: of an error, less is better."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 3  # words that make one, as in `bits_per_byte`


def _set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_LOWER = _set(
    # what went wrong, and how often
    "error errors err mistake mistakes wrong incorrect misclassification misclassifications",
    "fail fails failed failure failures miss misses violation violations fpr fnr",
    "falsepositive falsepositives falsenegative falsenegatives falsealarm falsealarms",
    # what is paid or minimised
    "loss losses logloss cost costs penalty penalties regret perplexity ppl crossentropy xent",
    "nll nlpd negloglikelihood negativeloglikelihood bpb bpc bitsperbyte bitsperchar bitspercharacter",
    # how far from the truth: distances, regression, forecasts, calibration, images
    "distance distances levenshtein divergence deviation deviations discrepancy residual residuals",
    "mse rmse mae mape smape wmape msle rmsle mase nmse nrmse rmsd medae",
    "brier crps ece kl kld jsd fid kid lpips",
    # recognition and translation; not `per`, a word in its own right
    "wer cer ter hter eer der mer",
    # how long it takes
    "latency latencies duration durations runtime walltime ttft",
)
"""Words that name what one wants less of; several words of a name are looked up as one, too."""

_OPEN = _set("entropy time seconds risk bias toxicity hallucination hallucinations")
"""Words that leave it open: entropy may be wanted, and some judges score that there is no toxicity."""

_REVERSED = _set(
    "neg negative negated minus inverse no non without free avoided saved saving savings reduction reduced",
    "improvement improved decrease decreased correction corrected recovery recovered detection detected",
    "accuracy acc precision recall f auc auroc auprc correct success successes",
)
"""Words that turn the others round, or outweigh them: `neg_log_loss`, `error_free`, `error_detection_f1`."""


def direction_word(name: str) -> str | None:
    """Return the word in a name for which its direction must not be taken for granted.

    Words are apart at ``_``, ``-``, ``.``, digits and changes of case. A wrong direction turns the verdict
    round, so that where there is such a word the direction has to be declared.

    Parameters
    ----------
    name : str
        Of a statistic or of a logged metric, such as ``val_loss`` or ``meanSquaredError``.

    Returns
    -------
    str or None
        As in the name, such as ``loss``; None where a greater value is better as far as the name says.
    """
    found = _found(name, _LOWER) or _found(name, _OPEN)
    return None if found is None else name[found[0] : found[1]]


def lower_is_better_by_name(name: str) -> bool:
    """Whether the name of a statistic or metric says that a lower value is better.

    Parameters
    ----------
    name : str
        Such as ``rmse``, ``val_loss`` or ``latencyMs``.

    Returns
    -------
    bool
        False also where :func:`direction_word` finds a word and the name leaves the direction open, as
        ``neg_log_loss``, ``cost_savings``, ``error_detection_f1`` and ``toxicity`` do.
    """
    found = _found(name, _LOWER)
    if found is None:
        return False
    start, end = found
    others = {word for word, place in _words(name) if not start <= place < end}
    return not others & _REVERSED


def _words(name: str) -> list[tuple[str, int]]:
    """Return the words of a name in lower case, and where each begins."""
    return [(match[0].lower(), match.start()) for match in _WORD.finditer(name)]


def _found(name: str, known: frozenset[str]) -> tuple[int, int] | None:
    """Return where in a name the first of the known words begins and ends, the longest that begins there."""
    words = _words(name)
    for i in range(len(words)):
        for n in range(min(_LONGEST, len(words) - i), 0, -1):
            part = words[i : i + n]
            if "".join(word for word, _ in part) in known:
                last, start = part[-1]
                return words[i][1], start + len(last)
    return None

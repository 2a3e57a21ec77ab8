"""Direction of a statistic or metric by its name: for an error, lower is better."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

_WORD = re.compile(
    r"(?i:(?<![a-z])n?err(?:[_-]?ia)?(?:@|_at_)[0-9]+|\Aerr_[0-9]+\Z|co2e?(?![a-z])|metricx(?![a-z])"
    r"|(?<![a-z])e2el(?![a-z]))"
    r"|[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
)
"""Words, and names that are read as one: the first are Expected Reciprocal Rank and no errors."""

_COMPOUND = re.compile(
    r"[a-z]*?(fehler(?:rate|quote)?|kosten|dauer|latenz|verlust|abweichung|laufzeit|antwortzeit|rechenzeit|zeit)\Z"
)
"""German compounds such as ``Wortfehlerrate``, whose end says what is measured."""

_LONGEST = 3  # words that are looked up as one: `bits_per_byte` is the longest entry


def _set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_LOWER_ABROAD = _set(
    "fehler fehlerrate fehlerquote verlust verluste kosten dauer latenz abweichung laufzeit antwortzeit",
    "rechenzeit erreur erreurs perte pertes cout couts duree durees latence errores perdida perdidas coste",
    "costes costo costos duracion latencia desviacion errore errori perdita perdite costi durata latenza",
)
"""German, French, Spanish and Italian words for errors, losses, costs and durations, without accents."""

_LOWER = _LOWER_ABROAD | _set(
    # failures and their rates
    "error errors err mistake mistakes wrong incorrect misclassification misclassifications",
    "fail fails failed failure failures miss misses missrate violation violations fpr fnr fallout",
    "falsepositive falsepositives falsenegative falsenegatives falsealarm falsealarms invalid",
    "leakagerate leakrate noisesensitivity imbalance incorrectness inaccuracy falsediscoveryrate fdr",
    # costs and objectives that are minimised
    "loss losses logloss cost costs penalty penalties regret perplexity ppl crossentropy xent",
    "nll nlpd negloglikelihood negativeloglikelihood bpb bpc bitsperbyte bitsperchar bitspercharacter",
    "surprisal emissions co2 co2e",
    # distances, and errors of regression, forecasts, calibration and images
    "distance distances levenshtein divergence deviation deviations discrepancy residual residuals",
    "mse rmse mae mape smape wmape msle rmsle mase nmse nrmse rmsd medae",
    "brier crps ece kl kld jsd fid fvd fad kid lpips niqe brisque mcd distortion metricx aurc",
    "rmsse mdape smdape mrae winkler pinball intervalscore deviance absrel sqrel silog mindcf cllr",
    "energyscore clashscore dockingscore vinascore glidescore molprobity selfbleu",
    "rankedprobabilityscore quantilescore ignorancescore variogramscore dawidsebastiani daviesbouldin",
    "msis wape wql ergas wasserstein idsw idswitch idswitches makespan",
    "absolutedifference absolutevaluedifference demographicparitydifference equalizedoddsdifference",
    # error rates of recognition and translation, without `per`, which is a common word
    "wer cer ter hter eer der mer wil wordinformationlost wordinfolost editrate cpwer tcpwer wder tdcf",
    "apcer bpcer",
    "insertionrate deletionrate substitutionrate crashrate collisionrate",
    # durations
    "latency latencies duration durations runtime walltime ttft elapsed timeout timeouts realtimefactor",
    # distances of segmentations, trajectories and texts
    "hausdorff chamfer mpjpe editdist",
)
"""Words for quantities that are better when lower; up to three words of a name are also looked up as one."""

_DIFFERENCES = _set(
    "error errors err residual residuals deviation deviations discrepancy fehler abweichung erreur erreurs",
    "errores desviacion errore errori",
)
"""Errors that may have a sign, as that of `predicted - actual`: only their size is better when lower."""

_OPEN = _set(
    "entropy time seconds risk bias biased toxicity toxic harmful unsafe hallucination hallucinations",
    "hallucinated refusal refusals refused jailbreak jailbreaks jailbroken",
    "attack attacks attacked stereotype stereotypes stereotyped stereotypical",
    "leakage leak leaks leaked nsfw nudity watermark watermarks watermarked longestcommonprefix not",
    "violence violent sexual hate hateful unfairness hateunfairness harm selfharm harmfulness profanity",
    "profane maliciousness misogyny criminality misinformation sycophancy sycophantic mqm",
)
"""Words that leave the direction open.

Entropy may be desired, some judges score the absence of toxicity, harm or leaks, MQM is a penalty or what it
leaves of 100, attacks succeed where the model
fails, watermarks may be wanted, and a long common prefix is copied, or right. What is `not` good is bad, and
what is `not` bad is good.
"""

_DETECTED = _set(
    "violence violent sexual hate hateful harm harmful unsafe selfharm profanity profane misogyny",
    "misinformation refusal refusals toxicity toxic hallucination hallucinations hallucinated nsfw nudity",
)
"""Such words for what a classifier finds in texts and images, if the name ends in a word for agreement."""

_AGREEMENT = _set("accuracy acc precision recall f auc auroc auprc mcc kappa")
"""Words for agreement with labels, whose greater values are better: `hate_speech_f1`."""

_ACRONYMS = _set("tpot itl e2el ape owa assd asd masd dcf jer aic bic rtf wis spis emd lsd bpd frr acer")
"""Short names of durations and errors, which are words or names elsewhere."""

_TIME_ABROAD = _set("zeit temps tiempo tempo")

_LOWER_ALONE = _ACRONYMS | _set(
    "hd ade fde epe substitutions deletions insertions edits price prices",
    "bad poor inaccurate unfaithful unsupported irrelevant ungrounded unsolved inappropriate",
    "crash crashes exceptions bug bugs mismatch mismatches contradiction contradictions inconsistency",
    "inconsistencies inconsistent collisions infraction infractions disengagements",
)
"""Words for distances, edits, costs and faults in names whose other words are all plain.

``ade20k_miou`` names a data set, and columns such as `price_range` or `bugs_fixed` may be anything.
"""

_OPEN_ALONE = _TIME_ABROAD | _set(
    "rank ranks fp fn tokens asr steps rejected severity gap anomaly uncertainty disagreement plagiarism pain"
)
"""Words that leave the direction open in names whose other words are all plain.

``asr`` is the success rate of attacks, or the recognition of speech, and attacks are `rejected`.
"""

_UNSPLIT = _set("metricx")
"""Words that count only when written as one: `metric_x` may be any metric, `metricx` is MetricX."""

_PLAIN = _set(
    "n num number count min max mean avg average median total of per the at k gold true correct target best"
    " first answer output input prompt completion generated example examples sample samples request requests"
    " is are was has rate ratio pct percent frac fraction"
)
"""Plain words: they do not say what is measured."""

_UNITS = _set("ms s sec secs p")
"""Units, and the letter of percentiles such as ``p99``, which are plain except after `per`."""

_REVERSED = _set(
    "neg negative negated minus inverse no non without free avoided saved saving savings reduction reduced",
    "improvement improved decrease decreased correction corrected recovery recovered detection detected",
    "accuracy acc precision recall f auc auroc auprc correct success successes similarity explained skill",
)
"""Words that reverse or outweigh the others: `neg_log_loss`, `error_detection_f1`, `brier_skill_score`."""

_JUDGED = _set("score scores rating ratings")
"""Words for what a judge gives, by which a name of faults may mean their absence: `inconsistency_score`."""

_OF_SCORES = _JUDGED | _set("rate metric evaluator scorer")
"""Words that may accompany a metric in the name of its evaluator: `toxicity_evaluator`."""

_GREATER = _set(
    "accuracy acc precision recall sensitivity specificity auc auroc auprc roc gini mcc kappa iou miou dice",
    "jaccard ap map ndcg dcg mrr rr hitrate successrate passrate solverate winrate exactmatch em",
    "bleu sacrebleu gleu chr chrf rouge rougel rougelsum meteor comet cometkiwi bleurt bertscore moverscore",
    "bartscore wip spearman pearson kendall correlation psnr ssim faithfulness factuality correctness",
    "completeness conciseness coherence fluency relevance relevancy groundedness helpfulness harmlessness",
    "similarity fscore fbeta kappa reciprocalrank silhouettescore calinskiharabasz explainedvariance",
    "mutualinfo randscore lddt clipscore tmscore",
)
"""Words for metrics whose greater values are better."""

_GREATER_WORDS = _set(
    "score scores reward rewards rating ratings grade graded quality judge judgement judgment points utility",
    "gain gains overlap includes throughput likelihood loglikelihood loglik logprob elo mos cider sari",
    "genauigkeit trefferquote korrekt exactitude justesse rappel exactitud accuratezza accuracies",
)
"""Words that imply that greater is better, and are common in other names, or in other languages."""

_OF_JUDGES = _set(
    "overall final raw aggregate aggregated combined composite weighted main primary own custom model llm",
    "gpt claude gemini human user annotator expert grader examiner reviewer teacher preference task question",
    "style content clarity readability creativity usefulness depth detail details instruction instructions",
    "following format formatting language grammar naturalness informativeness consistency logic reasoning",
    "math code coding knowledge writing safety truthfulness honesty empathy tone persuasiveness originality",
    "organization structure satisfaction engagement understanding comprehension adequacy agreement alignment",
    "professionalism politeness skill v rubric criteria exam essay retrieval summary translation star bench",
    "diversity mt gsm k",
)
"""Words for who gives a `score`, and for what: greater ones are better."""

_PERHAPS_NAMES = _LOWER_ABROAD | _ACRONYMS | _TIME_ABROAD
"""Words that are metrics as names of columns, and names of persons or models, or test words, as values."""

_ANY_METRIC = (_LOWER | _OPEN | _LOWER_ALONE | _OPEN_ALONE | _GREATER) - _PERHAPS_NAMES

_GREATER_AT = re.compile(
    r"(?i)(?<![a-z])(f[-_]?(1|0?[._]5)(?![0-9])|r[-_]?2(?![0-9])|hits?[-_]?[0-9]+"
    r"|(p|r|pass|hits?|success)([-_]?at[-_]|@)(k|[0-9]+))"
)
"""Metrics of one letter or a common word with their number: `F1`, `R2`, `P@10`, `pass@k`."""

_BESIDE = _set(
    "context response semantic macro micro weighted balanced normalized normalised token exact val valid",
    "test train dev eval strict norm word character char squared absolute root percentage quadratic cohen",
    "cohens ms sec usd",
)
"""Words that may accompany a metric and tell its values apart: `macro_F1`, `val_loss`."""

_GOOD_VALUES = _set(
    "correct right pass passed success successful succeeded solved resolved accepted acceptable good",
    "accurate valid faithful supported grounded relevant safe ok okay excellent harmless nontoxic",
    "appropriate compliant consistent match matches matched win wins won",
)

_BAD_VALUES = _set(
    "bad poor harm harmful toxic ungrounded rejected refused hallucinated lost lose loses misleading",
    "contradicts contradicted contradictory contradiction refuted crash crashed",
)
"""Words for bad examples, besides those of errors and the negated ones of good examples."""

_TRUE_VALUES = _set("true yes y t")

_OPEN_VALUES = _set(
    "not no non false n f none never neither nor cannot without zero hardly partial partially partly half"
)
"""Words that leave it open whether an example is good: "no" is good if it answers "is it toxic?"."""

_NEGATING = ("un", "in", "ir", "im", "dis", "mis", "non")


def direction_word(name: str) -> str | None:
    """Return the word in a name that leaves its direction open, so that it has to be declared.

    Words are separated by ``_``, ``-``, ``.``, digits and changes of case. A wrong direction reverses the
    verdict, so a name with such a word needs a declaration. :func:`lower_is_better_by_name` guesses the
    direction instead.

    Parameters
    ----------
    name : str
        Name of a statistic or of a logged metric, such as ``val_loss`` or ``meanSquaredError``.

    Returns
    -------
    str or None
        The word as in the name, such as ``loss``; None where the name implies that greater is better.

    Examples
    --------
    >>> from trackperm.statistic.direction import direction_word
    >>> direction_word("val_loss"), direction_word("accuracy")
    ('loss', None)
    """
    found = _found(name, _LOWER) or _found(name, _OPEN - _DETECTED if _names_agreement(name) else _OPEN)
    if found is None:
        found = _found_alone(name, _LOWER_ALONE) or _found_alone(name, _OPEN_ALONE)
    return None if found is None else unicodedata.normalize("NFC", name)[found[0] : found[1]]


def lower_is_better_by_name(name: str) -> bool:
    """Whether the name of a statistic or metric implies that a lower value is better.

    Parameters
    ----------
    name : str
        Name such as ``rmse``, ``val_loss`` or ``latencyMs``.

    Returns
    -------
    bool
        False also where :func:`direction_word` finds a word but the direction is open, as in
        ``neg_log_loss``, ``cost_savings``, ``error_detection_f1``, ``mismatch_score`` and ``toxicity``.

    Examples
    --------
    >>> from trackperm.statistic.direction import lower_is_better_by_name
    >>> lower_is_better_by_name("rmse"), lower_is_better_by_name("neg_log_loss")
    (True, False)
    """
    found = _found(name, _LOWER)
    if found is None:
        alone = _found_alone(name, _LOWER_ALONE)
        return alone is not None and not any(
            word in _JUDGED for word, start, _ in _words(name) if start >= alone[1]
        )
    start, end = found
    others = {word for word, place, _ in _words(name) if not start <= place < end}
    return not others & _REVERSED


def names_difference(name: str) -> bool:
    """Whether a name is that of an error which may have a sign, so that only its size is better when lower.

    Parameters
    ----------
    name : str
        Name such as ``residual`` or ``prediction_error``; the logarithm of an error is negative by right.

    Examples
    --------
    >>> from trackperm.statistic.direction import names_difference
    >>> names_difference("forecastError"), names_difference("log_error"), names_difference("nll")
    (True, False, False)
    """
    is_logarithm = any(word == "log" for word, *_ in _words(name))
    return not is_logarithm and lower_is_better_by_name(name) and _found(name, _DIFFERENCES) is not None


def greater_is_better_by_name(name: str) -> bool:
    """Whether the name of a statistic or metric implies that a greater value is better.

    Parameters
    ----------
    name : str
        Name such as ``accuracy``, ``macro_F1``, ``judge_score`` or ``is_correct``.

    Returns
    -------
    bool
        False for names of errors and of open direction, for names without a known word, and for a `score`,
        `rating` or the like of something unknown: a `ranked_probability_score` is an error.

    Examples
    --------
    >>> from trackperm.statistic.direction import greater_is_better_by_name
    >>> [greater_is_better_by_name(name) for name in ("macro_F1", "is_correct", "rmse", "valence")]
    [True, True, False, False]
    """
    if direction_word(name) is not None:
        return False
    known = (_GREATER | _GREATER_WORDS | _GOOD_VALUES) - _JUDGED
    if _found(name, known) is not None or _GREATER_AT.search(name) is not None:
        return True
    words = {word for word, *_ in _words(name)}
    return bool(words & _JUDGED) and words <= _OF_SCORES | _OF_JUDGES | _PLAIN | _UNITS | _BESIDE


def is_known_metric(name: str) -> bool:
    """Whether a name has the words of an error, or of a metric of open direction, and no others.

    Parameters
    ----------
    name : str
        Text that may be the name of a metric, or of a model, person or example.

    Returns
    -------
    bool
        False also for metrics whose greater values are better.

    Examples
    --------
    >>> from trackperm.statistic.direction import is_known_metric
    >>> is_known_metric("wer"), is_known_metric("toxicity_evaluator"), is_known_metric("loss_of_contract")
    (True, True, False)
    """
    for known in (_LOWER, _OPEN, _LOWER_ALONE, _OPEN_ALONE):
        if (found := _found(name, known - _PERHAPS_NAMES)) is not None:
            others = {word for word, place, _ in _words(name) if not found[0] <= place < found[1]}
            return others <= _PLAIN | _UNITS | _OF_SCORES
    return False


def is_metric(name: str) -> bool:
    """Whether a name has the words of a metric, in whichever direction, and no others.

    Parameters
    ----------
    name : str
        Text that may be the name of a metric, or of a model, person, task or example.

    Returns
    -------
    bool
        False also for words alone that are common in other names: ``success``, or ``f`` without a number.

    Examples
    --------
    >>> from trackperm.statistic.direction import is_metric
    >>> [is_metric(name) for name in ("macro_F1", "rougeL", "val_loss", "Jean ter Horst", "F")]
    [True, True, True, False, False]
    """
    rest, found = _GREATER_AT.subn(" ", name)
    if not rest.isascii():
        return False
    words = [word for word, *_ in _words(rest)]
    while words:
        size = next((n for n in range(_LONGEST, 0, -1) if "".join(words[:n]) in _ANY_METRIC), 0)
        found += size > 0
        if not size and words[0] not in _PLAIN | _UNITS | _OF_SCORES | _BESIDE:
            return False
        words = words[size or 1 :]
    return found > 0


def word_of_value(value: str) -> Literal["good", "bad", "true", "open", "unknown"]:
    """Whether the words of a value, such as a judge's verdict, say that an example is good.

    Parameters
    ----------
    value : str
        Value of a column, such as ``CORRECT`` or ``partly wrong``.

    Returns
    -------
    {'good', 'bad', 'true', 'open', 'unknown'}
        ``true`` for ``yes``, ``1`` and the like; ``open`` for ``no`` and for words that may mean both, such
        as ``not correct``; ``unknown`` if there are none of the known words.

    Examples
    --------
    >>> from trackperm.statistic.direction import word_of_value
    >>> [word_of_value(value) for value in ("CORRECT", "all wrong", "yes", "no", "A")]
    ['good', 'bad', 'true', 'open', 'unknown']
    """
    words = {word for word, *_ in _words(value)}
    if value.strip() in ("1", "1.0"):
        return "true"
    if words & _OPEN_VALUES or re.search(r"\b0|n['’]t\b", value.casefold()):
        return "open"
    words |= {word.removesuffix("ly") for word in words}
    negated = {f"{prefix}{word}" for prefix in _NEGATING for word in _GOOD_VALUES}
    if words & (_BAD_VALUES | negated) or lower_is_better_by_name(value):
        return "bad"
    if direction_word(value) is not None:
        return "open"
    if words & _TRUE_VALUES:
        return "true"
    return "good" if words & _GOOD_VALUES else "unknown"


class _Word(NamedTuple):
    """Word of a name in lower case and without accents, with its start and end in the name."""

    text: str
    start: int
    end: int


def _words(name: str) -> list[_Word]:
    """Return the words of a name; positions are those in its composed form (NFC).

    Of a German compound, only the part that says what is measured.
    """
    found = []
    for match in _WORD.finditer(_without_accents(name)):
        text = match[0].lower()
        if (compound := _COMPOUND.match(text)) is not None:
            text = compound[1]
        found.append(_Word(text, match.end() - len(text), match.end()))
    return found


def _without_accents(name: str) -> str:
    """Return the composed form of a name with plain letters for those with accents, one for one."""
    if name.isascii():
        return name
    return "".join(unicodedata.normalize("NFD", each)[0] for each in unicodedata.normalize("NFC", name))


def _names_agreement(name: str) -> bool:
    """Whether a name ends in a word for agreement with labels, before words such as `score` and `macro`."""
    words = [
        word for word, *_ in _words(name) if word in _AGREEMENT or word not in _PLAIN | _BESIDE | _OF_SCORES
    ]
    return bool(words) and words[-1] in _AGREEMENT


def _found_alone(name: str, known: frozenset[str]) -> tuple[int, int] | None:
    """Return start and end of the first known word in a name that has only plain words beside it."""
    words = {word for word, *_ in _words(name)}
    plain = _PLAIN | _OF_SCORES | (frozenset() if "per" in words else _UNITS)
    return _found(name, known) if words <= known | plain else None


def _found(name: str, known: frozenset[str]) -> tuple[int, int] | None:
    """Return start and end of the first known word in a name, the longest that begins there."""
    words = _words(name)
    for i in range(len(words)):
        for n in range(min(_LONGEST, len(words) - i), 0, -1):
            part = words[i : i + n]
            joined = "".join(word for word, *_ in part)
            if joined in known and (n == 1 or joined not in _UNSPLIT):
                return part[0].start, part[-1].end
    return None

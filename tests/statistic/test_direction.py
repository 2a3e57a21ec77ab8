"""Specs that are called like errors say whether less is better; names of metrics tell it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.specs import load, refusal, underlined

from trackperm.errors import SpecError
from trackperm.statistic import load_statistic, read_statistic
from trackperm.statistic.direction import (
    direction_word,
    greater_is_better_by_name,
    is_known_metric,
    is_metric,
    lower_is_better_by_name,
    word_of_value,
)
from trackperm.statistic.written_spec import written_spec

MEAN = "counts: {total: score, n: 1}\nscore: total / n\n"
LONG = "counts: {a: a}\ng: {x: u.a, y: v.a}\nh: x - y\n"

LOWER = {
    "is_invalid": "invalid",
    "unfaithful": "unfaithful",
    "num_bugs": "bugs",
    "mismatches": "mismatches",
    "false_discovery_rate": "false_discovery_rate",
    "rmse": "rmse",
    "mse": "mse",
    "mae": "mae",
    "val_loss": "loss",
    "log_loss": "log_loss",
    "valLoss": "Loss",
    "RMSEScore": "RMSE",
    "mean_squared_error": "error",
    "meanSquaredError": "Error",
    "error-rate": "error",
    "perplexity": "perplexity",
    "ppl": "ppl",
    "p95_latency": "latency",
    "latency99": "latency",
    "cost.usd": "cost",
    "wer": "wer",
    "CER": "CER",
    "ter": "ter",
    "nll": "nll",
    "negative_log_likelihood": "negative_log_likelihood",
    "cross_entropy": "cross_entropy",
    "brier_score": "brier",
    "edit_distance": "distance",
    "regret": "regret",
    "eval/loss": "loss",
    "false_positive_rate": "false_positive",
    "bits_per_byte": "bits_per_byte",
    "hd95": "hd",
    "min_ade": "ade",
    "edit_dist": "edit_dist",
    "elapsed_s": "elapsed",
    "timeouts": "timeouts",
    "wil": "wil",
    "word_information_lost": "word_information_lost",
    "n_deletions": "deletions",
    "substitutions": "substitutions",
    "insertions": "insertions",
    "translation_edit_rate": "edit_rate",
    "niqe": "niqe",
    "BRISQUE": "BRISQUE",
    "fvd": "fvd",
    "mcd": "mcd",
    "MetricX-24": "MetricX",
    "metricx": "metricx",
    "fall_out": "fall_out",
    "missrate": "missrate",
    "aurc": "aurc",
    "pa_mpjpe": "mpjpe",
    "chamfer": "chamfer",
    "pii_leakage_rate": "leakage_rate",
    "invalid_rate": "invalid",
    "noise_sensitivity": "noise_sensitivity",
    "price_per_example": "price",
    "kg_co2": "co2",
    "kgCO2e": "CO2e",
    "gender_imbalance": "imbalance",
    "absolute_value_difference": "absolute_value_difference",
    "demographic_parity_difference": "demographic_parity_difference",
    "equalized_odds_difference": "equalized_odds_difference",
    "err": "err",
    "mean_err": "err",
    "p99_tpot_ms": "tpot",
    "mean_e2el_ms": "e2el",
    "itl": "itl",
    "rtf": "rtf",
    "rmsse": "rmsse",
    "mean_ape": "ape",
    "winkler_score": "winkler",
    "interval_score": "interval_score",
    "masd": "masd",
    "abs_rel": "abs_rel",
    "minDCF": "minDCF",
    "tcpwer": "tcpwer",
    "mean_poisson_deviance": "deviance",
    "insertion_rate": "insertion_rate",
    "crash_rate": "crash_rate",
    "contradiction_rate": "contradiction",
    "scores.contradiction": "contradiction",
    "contradiction_evaluator": "contradiction",
    "docking_score": "docking_score",
    "ranked_probability_score": "ranked_probability_score",
    "vina_score": "vina_score",
    "davies_bouldin_score": "davies_bouldin",
    "MSIS": "MSIS",
    "wis": "wis",
    "IDSW": "IDSW",
    "min_t_dcf": "t_dcf",
    "EMD": "EMD",
    "makespan_s": "makespan",
    "n_infractions": "infractions",
    "Fehlerrate": "Fehlerrate",
    "Wortfehlerrate": "fehlerrate",
    "Antwortzeit": "Antwortzeit",
    "Trainingsverlust": "verlust",
    "taux_erreur": "erreur",
    "coût": "coût",
    "Cou\u0302t_moyen": "Coût",
    "durée_ms": "durée",
    "pérdida": "pérdida",
    "latenza": "latenza",
}
OPEN = {
    "not_correct": "not",
    "rejected": "rejected",
    "neg_log_loss": "log_loss",
    "neg_mean_squared_error": "error",
    "cost_savings": "cost",
    "error_free": "error",
    "error_detection_f1": "error",
    "loss_reduction": "loss",
    "entropy": "entropy",
    "toxicity": "toxicity",
    "inference_time": "time",
    "gold_rank": "rank",
    "mean rank": "rank",
    "n_fp": "fp",
    "output_tokens": "tokens",
    "attack_success_rate": "attack",
    "asr": "asr",
    "mean_asr": "asr",
    "pct_stereotype": "stereotype",
    "num_steps": "steps",
    "pii_leakage": "leakage",
    "nsfw_frac": "nsfw",
    "watermark_prob": "watermark",
    "longest_common_prefix_length": "longest_common_prefix",
    "fid_similarity": "fid",
    "co2_saved": "co2",
    "deviance_explained": "deviance",
    "Wartezeit": "zeit",
    "temps_ms": "temps",
    "brier_skill_score": "brier",
    "rmse_skill_score": "rmse",
    "contradiction_score": "contradiction",
    "unsupported_score_mean": "unsupported",
    "hd95_score": "hd",
    "severity_rating": "severity",
    "anomaly_score": "anomaly",
    "uncertainty_score": "uncertainty",
    "infraction_score": "infraction",
    "rank_score": "rank",
    "outputs.violence.violence_score": "violence",
    "outputs.hate_unfairness.hate_unfairness_score": "hate_unfairness",
    "self_harm_score": "self_harm",
    "harmfulness": "harmfulness",
    "mqm_score": "mqm",
    "sycophancy_score": "sycophancy",
    "recall_toxicity": "toxicity",
    "attack_auc": "attack",  # of an inference about the training data, which should fail
    "toxicity_bias_auc": "bias",
}
GREATER = (
    "violence_detection_accuracy",
    "hate_speech_f1_macro",
    "self_harm_precision_score",
    "hallucination_auc",
    "refusal_accuracy",
    "bugs_fixed",
    "bad_words_filtered",
    "matches",
    "reciprocal_rank",
    "rank_correlation",
    "fn_accuracy",
    "ade20k_miou",
    "miou_ade20k",
    "hd_iou",
    "psnr_hd",
    "ade_f1",
    "correct_tokens_seen",
    "accuracy",
    "f1",
    "glossary",  # no word by itself
    "terrific",
    "winter",
    "closest",
    "macerate",
    "per_item",
    "true_negative_rate",
    "log_likelihood",
    "log_odds",
    "regression_r2",
    "asr_bleu",
    "ERR@20",  # Expected Reciprocal Rank
    "err@10",
    "nERR_IA@20",
    "err_20",
    "metric_x",
    "edit_similarity",
    "overlap",
    "price_range_match",
    "tpot_accuracy",
    "tokens_per_s",
    "Trefferquote",
    "deletion_f1",
    "f1_score",
    "harmlessness_score",
    "safety_score",
    "skill_score",
    "anomaly_detection_score",
    "will",
    "",
)


@pytest.mark.parametrize(("name", "word"), LOWER.items(), ids=LOWER)
def test_names_of_scores_where_lower_is_better(name: str, word: str) -> None:
    assert direction_word(name) == word
    assert lower_is_better_by_name(name)


@pytest.mark.parametrize(("name", "word"), OPEN.items(), ids=OPEN)
def test_names_that_leave_it_open(name: str, word: str) -> None:
    """They are no guess of ours, and a spec has to say it."""
    assert direction_word(name) == word
    assert not lower_is_better_by_name(name)


@pytest.mark.parametrize("name", GREATER)
def test_names_without_a_direction(name: str) -> None:
    assert direction_word(name) is None
    assert not lower_is_better_by_name(name)


KNOWN = ["accuracy", "macro_F1", "pass@1", "is_correct", "judge_score", "reward", "BLEU-4", "Genauigkeit"]
KNOWN += [
    "score",
    "overall_score",
    "llm_rating",
    "clarity_scores",
    "silhouette_score",
    "lddt_score",
    "clip_score",
    "tm_score",
    "CIDEr",
    "rubric_score",
    "star_rating",
    "mt_bench_score",
    "gsm8k_score",
    "answer_relevancy/v1/score",
]


@pytest.mark.parametrize("name", KNOWN)
def test_names_that_say_that_greater_is_better(name: str) -> None:
    assert greater_is_better_by_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "valence",
        "tweedie",
        "memory_mb",
        "rmse",
        "interval_score",
        "toxicity",
        "drift_score",
        "vorticity_rating",
        "",
    ],
)
def test_names_that_do_not_say_that_greater_is_better(name: str) -> None:
    assert not greater_is_better_by_name(name)


@pytest.mark.parametrize("name", ["val_loss", "rmse", "neg_log_loss"])
@pytest.mark.parametrize("text", [MEAN, LONG], ids=["score", "h"])
def test_a_spec_without_the_direction_is_refused(tmp_path: Path, name: str, text: str) -> None:
    message = refusal(tmp_path, f"name: {name}\n{text}")
    assert message.startswith(f"spec.yaml:1:7: `{name}` needs the key `greater_is_better`")
    assert underlined(message) == name
    assert "`greater_is_better: false`, or `greater_is_better: true`" in message


@pytest.mark.parametrize("said", ["true", "false"])
def test_either_direction_can_be_declared(tmp_path: Path, said: str) -> None:
    statistic = load(tmp_path, f"name: val_loss\n{MEAN}greater_is_better: {said}\n")
    assert statistic.greater_is_better == (said == "true")


@pytest.mark.parametrize(("text", "key"), [(MEAN, "score"), (LONG, "h")])
def test_the_name_of_the_file_counts(tmp_path: Path, text: str, key: str) -> None:
    path = tmp_path / "rmse.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match="`rmse` needs the key `greater_is_better`") as caught:
        load_statistic(path)
    assert underlined(str(caught.value)).startswith(key)
    path.write_text(f"name: quality\n{text}", encoding="utf-8")
    assert load_statistic(path).greater_is_better


def test_the_name_of_a_stored_statistic_counts() -> None:
    with pytest.raises(SpecError, match="`rmse` needs the key `greater_is_better`"):
        read_statistic(MEAN, "stored statistic rmse", "rmse")
    assert read_statistic(MEAN, "stored statistic quality", "quality").name == "quality"


def test_the_document_declares_the_direction(tmp_path: Path) -> None:
    """The spec that is logged is read again, whatever its name."""
    document = written_spec(load(tmp_path, f"name: val_loss\n{MEAN}greater_is_better: true\n"))
    assert written_spec(load(tmp_path, document)) == document


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("good", ["CORRECT", "correctly", "PASS", "resolved", "valid", "Successful", "fully_correct"]),
        ("bad", ["INCORRECT", "resolved_incorrectly", "inaccurate", "unsuccessful", "UNSAFE"]),
        ("bad", ["irrelevant", "invalid", "error", "test failed", "hallucinated", "rejected"]),
        ("good", ["OK", "harmless", "win", "appropriate", "compliant", "match", "nontoxic"]),
        ("bad", ["inappropriate", "noncompliant", "mismatch", "misleading", "contradicts", "refuted"]),
        ("true", ["yes", "True", "Y", "1", "1.0"]),
        (
            "open",
            ["no", "false", "N", "0", "0.0", "not correct", "It isn't correct", "never correct", "no error"],
        ),
        ("open", ["0 errors", "zero errors", "cannot be called correct", "partially correct", "toxicity"]),
        ("unknown", ["A", "model", "10", "blue"]),
    ],
)
def test_words_of_values(kind: str, values: list[str]) -> None:
    assert {value: word_of_value(value) for value in values} == dict.fromkeys(values, kind)


@pytest.mark.parametrize(
    "name", ["wer", "WER", "error_rate", "toxicity_evaluator", "SelfHarmEvaluator", "n_tokens", "hd95"]
)
def test_names_of_nothing_but_a_metric(name: str) -> None:
    assert is_known_metric(name)


@pytest.mark.parametrize(
    "name", ["accuracy", "loss_of_contract", "Mr. Miss", "gpt-4-judge", "error_bot", "Dauer", "asd", ""]
)
def test_names_that_may_be_of_something_else(name: str) -> None:
    assert not is_known_metric(name)


METRICS = [
    "accuracy",
    "F1",
    "macro_f1",
    "f_beta",
    "f0.5",
    "rougeL",
    "ROUGE-1",
    "BERTScore",
    "chrF++",
    "nDCG@10",
    "mAP",
    "AUC-ROC",
    "exact_match",
    "P@5",
    "R2",
    "pass@k",
    "hits@10",
    "latency_ms",
    "answer_relevancy",
    "word_error_rate",
    "toxicity",
    "BLEU-4",
]


@pytest.mark.parametrize("name", METRICS)
def test_names_of_metrics_in_either_direction(name: str) -> None:
    assert is_metric(name)


@pytest.mark.parametrize(
    "name", ["f", "F", "f2", "p1", "r1", "pass", "judge", "answer", "score", "Match3", "login_failure", ""]
)
def test_names_that_are_no_metrics(name: str) -> None:
    assert not is_metric(name)

"""Names of metrics in MLflow, scikit-learn, SciPy and evaluate, and the statistics that test them."""

from __future__ import annotations

LIBRARY_NAMES = {
    "accuracy_score": ("accuracy",),
    "auc": ("roc_auc",),
    "average_precision_score": ("average_precision",),
    "balanced_accuracy_score": ("balanced_accuracy",),
    "brier_score": ("brier", "multiclass_brier"),
    "brier_score_loss": ("brier", "multiclass_brier"),
    "cer": ("character_error_rate",),
    "cohen_kappa_score": ("cohen_kappa",),
    "f1_score": ("f1", "weighted_f1", "macro_f1"),
    "fbeta_score": ("f_beta",),
    "jaccard_score": ("jaccard",),
    "kendalltau": ("kendall_tau_b",),
    "matthews_corrcoef": ("mcc", "multiclass_mcc"),
    "mean_absolute_error": ("mae",),
    "mean_reciprocal_rank": ("mrr",),
    "mean_squared_error": ("mse",),
    "ndcg_score": ("ndcg",),
    "pearsonr": ("pearson",),
    "precision_recall_auc": ("average_precision",),
    "precision_score": ("precision", "weighted_precision", "macro_precision"),
    "r2_score": ("r2",),
    "recall_score": ("recall", "weighted_recall", "macro_recall"),
    "multiclass_roc_auc": ("weighted_roc_auc", "macro_roc_auc"),
    "roc_auc_ovr": ("macro_roc_auc",),
    "roc_auc_ovr_weighted": ("weighted_roc_auc",),
    "roc_auc_score": ("roc_auc", "weighted_roc_auc", "macro_roc_auc"),
    "root_mean_squared_error": ("rmse",),
    "seqeval": ("span_f1",),
    "somersd": ("somers_d",),
    "spearmanr": ("spearman",),
    "top_k_accuracy_score": ("top_k_accuracy",),
    "wer": ("word_error_rate",),
}
"""Built-in statistics for each name: several where the number depends on arguments or on the labels."""

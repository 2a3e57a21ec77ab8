"""Directions of HELM's metrics whose names do not show them, as its schemas (``schema_*.yaml``) say."""

from __future__ import annotations

from collections.abc import Collection

_LOWER = frozenset(
    (
        # toxicity and bias
        "toxic_frac",
        "expected_max_toxicity",
        "max_toxicity_probability",
        "bbq_metric_ambiguous_bias",
        "bbq_metric_unambiguous_bias",
        # images
        "nsfw_frac",
        "nudity_frac",
        "blacked_out_frac",
        "expected_max_nsfw_score",
        "max_nsfw_probability",
        "watermark_frac",
        "expected_max_watermark_prob",
        "copyright_human",
    )
)

_GREATER = frozenset(("fid_similarity", "lpips_similarity"))
"""Similarities of images that are named after distances; greater values are better."""

_COPIED = "longest_common_prefix_length"
"""Metric that marks a copyright scenario, in which models should not reproduce texts."""

_GREATER_OF_COPIES = {_COPIED: False, "edit_similarity": False, "edit_distance": True}
"""Directions in copyright scenarios; elsewhere, outputs should be similar to references."""


def directions(metrics: Collection[str]) -> dict[str, bool]:
    """Map metrics whose names do not show a direction to whether greater values are better.

    Names may be followed by a sub-split, as in ``toxic_frac/non-toxic``, or by a condition, as in
    ``nsfw_frac_given_toxic_prompt=True``.
    """
    known = {**dict.fromkeys(_LOWER, False), **dict.fromkeys(_GREATER, True)}
    if _COPIED in metrics:
        known |= _GREATER_OF_COPIES
    plain = {name: name.partition("/")[0].partition("_given_")[0] for name in metrics}
    return {name: known[metric] for name, metric in plain.items() if metric in known}

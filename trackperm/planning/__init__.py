"""How many examples it takes to see a difference: by a pilot, a discordance, or past comparisons."""

from trackperm.planning.past import PastPlan, plan_from_past
from trackperm.planning.plan import Plan, plan_from_counts, plan_from_pilot, plan_paired

__all__ = [
    "PastPlan",
    "Plan",
    "plan_from_counts",
    "plan_from_past",
    "plan_from_pilot",
    "plan_paired",
]

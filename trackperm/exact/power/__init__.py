"""Power, sample size, and minimum detectable effect."""

from trackperm.exact.power.detectable import MinimumDetectableEffect
from trackperm.exact.power.equivalence import EquivalencePower, equivalence_power
from trackperm.exact.power.from_counts import detectable_effect
from trackperm.exact.power.needed import ExamplesNeeded, examples_needed
from trackperm.exact.power.normal import (
    approximate_examples_needed,
    approximate_minimum_detectable_effect,
    null_standard_deviation,
)
from trackperm.exact.power.paired import minimum_detectable_effect, paired_power
from trackperm.exact.power.simulated import SimulatedPower, simulated_power

__all__ = [
    "EquivalencePower",
    "ExamplesNeeded",
    "MinimumDetectableEffect",
    "SimulatedPower",
    "approximate_examples_needed",
    "approximate_minimum_detectable_effect",
    "detectable_effect",
    "equivalence_power",
    "examples_needed",
    "minimum_detectable_effect",
    "null_standard_deviation",
    "paired_power",
    "simulated_power",
]

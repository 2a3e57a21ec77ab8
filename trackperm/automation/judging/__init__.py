"""Comparison of a candidate with its baseline under a policy, and the judgement of the result."""

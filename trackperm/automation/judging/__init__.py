"""Compare a candidate with its baseline under a policy, and decide the outcome."""

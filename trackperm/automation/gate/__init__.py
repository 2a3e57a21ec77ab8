"""Gate: one candidate judged by a policy in continuous integration, and its report."""

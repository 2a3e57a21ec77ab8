"""Comparisons that run unattended: when a script ends, from queues and webhooks, and in gates."""

"""Comparisons that run unattended: on exit, from queues and webhooks, and in gates."""

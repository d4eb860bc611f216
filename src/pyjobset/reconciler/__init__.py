"""Observation -> Decision, pure: what a JobSet needs next. decide.py has the order, a policy a file beside it."""

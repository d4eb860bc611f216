"""Defaults and admission rules of a JobSet, pure: every problem of a manifest at once."""

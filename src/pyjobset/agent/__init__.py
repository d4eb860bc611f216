"""The in-place restart agent (KEP-467): a small program in every pod of a JobSet that restarts in place."""

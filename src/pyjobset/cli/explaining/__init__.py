"""Why a JobSet is in the state that it is in, what is missing, where, and what would help. Pure; see cli.explain."""

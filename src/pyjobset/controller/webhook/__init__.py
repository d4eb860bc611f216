"""The admission webhooks of JobSets: what the API server asks before it stores one, and what we answer."""

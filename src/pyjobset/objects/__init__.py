"""JobSet and the Kubernetes objects it deals in: types, names, keys. Frozen, pure, no I/O.

Types declare only the fields that we read; what we only carry stays a plain mapping (templates).
"""

"""JobSet for Kubernetes in Python. See ARCHITECTURE.md for a reading order."""

__version__ = "0.1.0"

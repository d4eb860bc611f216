"""A model of the cluster in memory, for tests and what-if: it never takes the place of Kubernetes."""

"""A real Kubernetes control plane on this machine. The only package that starts programs."""

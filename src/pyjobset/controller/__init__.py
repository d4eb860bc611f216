"""The running manager: a thin shell around the pure decide. It watches, queues, applies, and stops well."""

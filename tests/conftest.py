"""What all tests share: laws (Hypothesis) have no deadline, a busy machine is no fault."""

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

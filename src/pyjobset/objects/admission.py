"""Names and paths of the admission webhooks: those of the original controller, as installations and tools know them.

The controller serves the paths; whoever registers the webhooks (the local plane) names them.
"""

MUTATING_WEBHOOK = "mjobset.kb.io"
VALIDATING_WEBHOOK = "vjobset.kb.io"
MUTATING_CONFIGURATION = "jobset-mutating-webhook-configuration"
VALIDATING_CONFIGURATION = "jobset-validating-webhook-configuration"
MUTATE_PATH = "/mutate-jobset-x-k8s-io-v1alpha2-jobset"
VALIDATE_PATH = "/validate-jobset-x-k8s-io-v1alpha2-jobset"

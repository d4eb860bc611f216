"""Names and paths of the admission webhooks: those of the original controller, as installations and tools know them.

The controller serves the paths; whoever registers the webhooks (the local plane) names them.
"""

from pyjobset.objects import labels

MUTATING_WEBHOOK = "mjobset.kb.io"
VALIDATING_WEBHOOK = "vjobset.kb.io"
MUTATING_CONFIGURATION = "jobset-mutating-webhook-configuration"
VALIDATING_CONFIGURATION = "jobset-validating-webhook-configuration"
MUTATE_PATH = "/mutate-jobset-x-k8s-io-v1alpha2-jobset"
VALIDATE_PATH = "/validate-jobset-x-k8s-io-v1alpha2-jobset"

POD_MUTATING_WEBHOOK = "mpod.kb.io"
POD_VALIDATING_WEBHOOK = "vpod.kb.io"
POD_MUTATE_PATH = "/mutate--v1-pod"
POD_VALIDATE_PATH = "/validate--v1-pod"
POD_LABEL = labels.JOBSET_NAME
"""Only pods that have it are reviewed."""
POD_CONDITION = (
    "has(object.metadata.annotations)"
    f" && '{labels.EXCLUSIVE_TOPOLOGY}' in object.metadata.annotations"
    f" && !('{labels.NODE_SELECTOR}' in object.metadata.annotations)"
)
"""CEL, for matchConditions: of those only the pods of exclusive placement. The others cost no request, and are made
also while no webhook answers."""

"""The rules of warnings: what is admitted, and worth a look. Found by rules.warnings.

A part of the table in rules.registry, from where everybody takes them.
"""

from pyjobset.objects import features
from pyjobset.rules.rule import Rule, where_gates_are

CLAIM_DIFFERS = Rule(
    "claim-differs",
    "spec.replicatedJobs[].template.spec.template.spec.resourceClaims[]",
    "is not the claim of the same name in spec.scheduling, so it is not shared",
    "use the same resourceClaimName or resourceClaimTemplateName in both",
    "warning",
)
CLAIM_UNUSED = Rule(
    "claim-unused",
    "spec.scheduling.replicatedJobs[].job.resourceClaims[]",
    "is used by no pod of the Job",
    "add the same entry to the pod template's resourceClaims",
    "warning",
)
JOB_TTL_IGNORED = Rule(
    "job-ttl-ignored",
    "spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished",
    "is ignored: a Job that deletes itself takes its result along, and would run again",
    "set ttlSecondsAfterFinished of the JobSet: it deletes its Jobs too",
    "warning",
)
ANNOTATION_IGNORED = Rule("annotation-ignored", "metadata", "has no effect", "correct its spelling", "warning")
NO_JOBS = Rule(
    "no-jobs",
    "spec.replicatedJobs",
    "asks for no Job at all, so the JobSet completes at once",
    "add a ReplicatedJob with replicas of 1 or more",
    "warning",
)
SCHEDULING_IGNORED = Rule(
    "scheduling-ignored",
    "spec.scheduling",
    "is ignored: the feature gate JobSetWorkloadAwareSchedulingAPI is off",
    f"turn the gate on {where_gates_are(features.WORKLOAD_AWARE_SCHEDULING)}",
    "warning",
)
IN_PLACE_RESTART_WAITS = Rule(
    "in-place-restart-waits",
    "spec.replicatedJobs[].dependsOn[].status",
    "never comes about with restartStrategy InPlaceRestart: no pod runs before all pods of the JobSet are there",
    "write Ready, leave dependsOn out, or use Recreate",
    "warning",
)
STARTUP_POLICY_DEPRECATED = Rule(
    "startup-policy-deprecated", "spec.startupPolicy", "is deprecated", "use dependsOn", "warning"
)
GANG_BACKOFF_LIMIT = Rule(
    "gang-backoff-limit",
    "spec.replicatedJobs[].template.spec.backoffLimit",
    "is less than the pods of a Job: a preemption of the gang fails the Job and the JobSet",
    "set failurePolicy.maxRestarts, a larger backoffLimit, or a podFailurePolicy that ignores DisruptionTarget",
    "warning",
)

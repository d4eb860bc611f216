"""Every admission rule in one table: a stable code, the field, what must hold, what to do about a breach.

docs/reference/rules.md is made from RULES, and a test demands of each rule a case where it fires and one where it does
not. Codes are API: people grep for them and silence them, so a code is never renamed and never reused.
"""

from collections.abc import Mapping

from pyjobset.objects import features
from pyjobset.rules.cautions import ANNOTATION_IGNORED as ANNOTATION_IGNORED
from pyjobset.rules.cautions import CLAIM_DIFFERS as CLAIM_DIFFERS
from pyjobset.rules.cautions import CLAIM_UNUSED as CLAIM_UNUSED
from pyjobset.rules.cautions import GANG_BACKOFF_LIMIT as GANG_BACKOFF_LIMIT
from pyjobset.rules.cautions import IN_PLACE_RESTART_WAITS as IN_PLACE_RESTART_WAITS
from pyjobset.rules.cautions import JOB_TTL_IGNORED as JOB_TTL_IGNORED
from pyjobset.rules.cautions import NO_JOBS as NO_JOBS
from pyjobset.rules.cautions import SCHEDULING_IGNORED as SCHEDULING_IGNORED
from pyjobset.rules.cautions import STARTUP_POLICY_DEPRECATED as STARTUP_POLICY_DEPRECATED
from pyjobset.rules.rule import Rule, where_gates_are
from pyjobset.rules.structure import DUPLICATE as DUPLICATE
from pyjobset.rules.structure import NAME_REQUIRED as NAME_REQUIRED
from pyjobset.rules.structure import NOT_AN_OBJECT as NOT_AN_OBJECT
from pyjobset.rules.structure import NULL_VALUE as NULL_VALUE
from pyjobset.rules.structure import NUMBER_RANGE as NUMBER_RANGE
from pyjobset.rules.structure import REQUIRED_FIELD as REQUIRED_FIELD
from pyjobset.rules.structure import TOO_DEEP as TOO_DEEP
from pyjobset.rules.structure import TOO_FEW_ITEMS as TOO_FEW_ITEMS
from pyjobset.rules.structure import TOO_LARGE as TOO_LARGE
from pyjobset.rules.structure import TOO_LONG as TOO_LONG
from pyjobset.rules.structure import TOO_MANY_ITEMS as TOO_MANY_ITEMS
from pyjobset.rules.structure import TOO_SMALL as TOO_SMALL
from pyjobset.rules.structure import UNKNOWN_FIELD as UNKNOWN_FIELD
from pyjobset.rules.structure import UNSUPPORTED_VALUE as UNSUPPORTED_VALUE
from pyjobset.rules.structure import WRONG_API_VERSION as WRONG_API_VERSION
from pyjobset.rules.structure import WRONG_KIND as WRONG_KIND
from pyjobset.rules.structure import WRONG_TYPE as WRONG_TYPE

# References.
UNKNOWN_REPLICATED_JOB = Rule(
    "unknown-replicated-job",
    "any reference",
    "names no ReplicatedJob of this JobSet",
    "name one of spec.replicatedJobs",
)

# Names, given and generated.
JOBSET_NAME = Rule(
    "jobset-name",
    "metadata.name",
    "must be an RFC 1035 label, because child Jobs, pods and the Service are named after it",
    "lower-case letters, digits and '-', starting with a letter",
)
NAMESPACE_NAME = Rule(
    "namespace-name", "metadata.namespace", "must be a DNS label", "lower-case letters, digits and '-'"
)
LABEL_KEY = Rule(
    "label-key",
    "labels and annotations",
    "has a key that is not a qualified name",
    "write name or prefix.example.com/name; the name has at most 63 characters",
)
LABEL_VALUE = Rule(
    "label-value",
    "labels",
    "has a value that is not a label value",
    "at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
)
REPLICATED_JOB_NAME = Rule(
    "replicated-job-name",
    "spec.replicatedJobs[].name",
    "must be a DNS label: it is part of names and a label value",
    "lower-case letters, digits and '-', with a letter or digit at both ends",
)
JOB_NAME = Rule(
    "job-name",
    "spec.replicatedJobs[].name",
    "makes child Job names that are too long",
    "shorten the name of the JobSet or of the ReplicatedJob",
)
POD_NAME = Rule(
    "pod-name",
    "spec.replicatedJobs[].name",
    "makes pod names that are too long",
    "shorten the name of the JobSet or of the ReplicatedJob",
)
GROUP_NAME = Rule(
    "group-name",
    "spec.replicatedJobs[].groupName",
    "must be an RFC 1035 label",
    "lower-case letters, digits and '-', starting with a letter; leave it out for `default`",
)
SUBDOMAIN = Rule(
    "subdomain",
    "spec.network.subdomain",
    "must be an RFC 1035 label, because the Service is named so",
    "lower-case letters, digits and '-', starting with a letter; leave it out for the JobSet's name",
)

# Job templates.
COMPLETIONS_REQUIRED = Rule(
    "completions-required",
    "spec.replicatedJobs[].template.spec.completions",
    "must be set when completionMode is Indexed and parallelism is set",
    "set completions, or completionMode: NonIndexed",
)
PODS_OVERFLOW = Rule(
    "pods-overflow",
    "spec.replicatedJobs[].replicas",
    "times parallelism is more than 2147483647",
    "lower replicas or parallelism",
)
JOBS_OVERFLOW = Rule(
    "jobs-overflow", "spec.replicatedJobs[].replicas", "makes more than 20000 Jobs in all", "lower replicas"
)

# Order of start.
DEPENDS_ON_FIRST = Rule(
    "depends-on-first",
    "spec.replicatedJobs[0].dependsOn",
    "must be empty: nothing comes before the first ReplicatedJob",
    "move the entry after those it depends on",
)
DEPENDS_ON_ORDER = Rule(
    "depends-on-order",
    "spec.replicatedJobs[].dependsOn[].name",
    "must name an earlier ReplicatedJob",
    "move the ReplicatedJob that it waits for before this one",
)
STARTUP_TWO_MODELS = Rule(
    "startup-two-models",
    "spec.startupPolicy",
    "is mutually exclusive with dependsOn when it is InOrder",
    "keep dependsOn and remove startupPolicy",
)

# Policies.
RULE_NAME = Rule(
    "rule-name",
    "spec.failurePolicy.rules[].name",
    "must be 1 to 128 letters, digits, '_', ',' and ':', starting with a letter and ending with a letter, digit or '_'",
    "leave it out for failurePolicyRule<index>",
)
MESSAGE_PATTERN = Rule(
    "message-pattern",
    "spec.failurePolicy.rules[].onJobFailureMessagePatterns[]",
    "must be an RE2 regular expression",
    "see the RE2 syntax; matching takes linear time, so there is no lookaround and no backreference",
)
RESTART_JOB_GATE = Rule(
    "restart-job-gate",
    "spec.failurePolicy.rules[].action",
    "needs the feature gate RestartJob",
    f"turn on RestartJob {where_gates_are(features.RESTART_JOB)}, or use RestartJobSet",
)
RESTART_JOB_REPLICAS = Rule(
    "restart-job-replicas",
    "spec.replicatedJobs[].replicas",
    "must be at most 1024 when a failure policy rule restarts single Jobs",
    "lower replicas, or use RestartJobSet",
)
IN_PLACE_RESTART_GATE = Rule(
    "in-place-restart-gate",
    "spec.failurePolicy.restartStrategy",
    "needs the feature gate InPlaceRestart",
    f"turn on InPlaceRestart {where_gates_are(features.IN_PLACE_RESTART)}, or use Recreate",
)
IN_PLACE_RESTART_TEMPLATE = Rule(
    "in-place-restart-template",
    "spec.replicatedJobs[].template.spec",
    "does not fit restartStrategy InPlaceRestart",
    "set backoffLimit: 2147483647, podReplacementPolicy: Failed, and completions equal to parallelism",
)
MANAGED_BY = Rule(
    "managed-by",
    "spec.managedBy",
    "must be a domain-prefixed path of at most 63 characters",
    "for example jobset.sigs.k8s.io/jobset-controller",
)
ACTIVE_DEADLINE_GATE = Rule(
    "active-deadline-gate",
    "spec.activeDeadlineSeconds",
    "needs the feature gate JobSetActiveDeadlineSeconds",
    f"turn it on {where_gates_are(features.ACTIVE_DEADLINE_SECONDS)}, or remove the field",
)

# Coordinator.
COORDINATOR_JOB_INDEX = Rule(
    "coordinator-job-index",
    "spec.coordinator.jobIndex",
    "must be the index of a Job of the ReplicatedJob",
    "indexes go from 0 to replicas - 1",
)
COORDINATOR_TEMPLATE = Rule(
    "coordinator-template",
    "spec.coordinator.replicatedJob",
    "must name an Indexed ReplicatedJob with completions set",
    "set completionMode: Indexed and completions in its template",
)
COORDINATOR_POD_INDEX = Rule(
    "coordinator-pod-index",
    "spec.coordinator.podIndex",
    "must be the completion index of a pod of the Job",
    "indexes go from 0 to completions - 1",
)
COORDINATOR_ENDPOINT = Rule(
    "coordinator-endpoint",
    "spec.coordinator",
    "has an address that is not a label value",
    "shorten the name of the JobSet, of the ReplicatedJob or the subdomain: 63 characters in all",
)

# Volumes.
CLAIM_TEMPLATE_NAME = Rule(
    "claim-template-name",
    "spec.volumeClaimPolicies[].templates[].metadata.name",
    "must be a DNS label: it is the name of a pod volume",
    "lower-case letters, digits and '-'",
)
CLAIM_TEMPLATE_NAMESPACE = Rule(
    "claim-template-namespace",
    "spec.volumeClaimPolicies[].templates[].metadata.namespace",
    "must be empty",
    "claims are created in the JobSet's namespace",
)
CLAIM_NAME = Rule(
    "claim-name",
    "spec.volumeClaimPolicies[].templates[].metadata.name",
    "makes a claim name that is too long",
    "shorten the name of the template or of the JobSet: <template>-<jobset> has at most 63 characters",
)
CLAIM_NOT_MOUNTED = Rule(
    "claim-not-mounted",
    "spec.volumeClaimPolicies[].templates[]",
    "is mounted by no container",
    "add a volumeMount of that name to a container, or remove the template",
)
CLAIM_VOLUME_TAKEN = Rule(
    "claim-volume-taken",
    "spec.replicatedJobs[].template.spec.template.spec.volumes[]",
    "has the name of a claim template",
    "rename the volume, or remove the claim template",
)

# spec.scheduling.
SCHEDULING_GATE = Rule(
    "scheduling-gate",
    "spec.scheduling",
    "needs the feature gate JobSetWorkloadAwareSchedulingAPI",
    f"turn it on {where_gates_are(features.WORKLOAD_AWARE_SCHEDULING)}, or remove spec.scheduling",
)
SCHEDULING_TWO_MODELS = Rule(
    "scheduling-two-models",
    "spec.scheduling",
    "cannot set schedulingPolicy, schedulingConstraints, or disruptionMode together with replicatedJobs",
    "move them into the entries of spec.scheduling.replicatedJobs, or remove replicatedJobs",
)
UNION_MEMBER = Rule(
    "union-member",
    "schedulingPolicy, disruptionMode, resourceClaims[]",
    "must specify exactly one member",
    "set one of the members, the other not at all",
)
MIN_COUNT_COMPUTED = Rule(
    "min-count-computed",
    "gang.minCount outside of job",
    "is computed here and cannot be set",
    "remove it; only spec.scheduling.replicatedJobs[].job takes a quorum",
)
MIN_COUNT_PODS = Rule(
    "min-count-pods",
    "spec.scheduling.replicatedJobs[].job.schedulingPolicy.gang.minCount",
    "is more than the pods that run at once in the Job",
    "lower it, or leave it out for all pods of the Job",
)
TOPOLOGY_KEY = Rule(
    "topology-key",
    "schedulingConstraints.topology[].key, metadata.annotations[alpha.jobset.sigs.k8s.io/exclusive-topology]",
    "must be a label key",
    "write the key of a node label, for example topology.kubernetes.io/rack",
)
RESOURCE_CLAIM_NAME = Rule(
    "resource-claim-name",
    "spec.scheduling.replicatedJobs[].job.resourceClaims[]",
    "has a name that Kubernetes refuses",
    "the name is a DNS label, the claim or template it refers to a DNS subdomain",
)
TARGET_TWICE = Rule(
    "target-twice",
    "spec.scheduling.replicatedJobs[].targetReplicatedJobs[]",
    "is targeted more than once",
    "a ReplicatedJob belongs to exactly one entry",
)
NOT_TARGETED = Rule(
    "not-targeted",
    "spec.replicatedJobs[].name",
    "is the target of no entry of spec.scheduling.replicatedJobs",
    "add it to an entry, or an entry of its own; {basic: {}} schedules its pods one by one",
)
JOB_ONE_TARGET = Rule(
    "job-one-target",
    "spec.scheduling.replicatedJobs[].job",
    "needs exactly one target",
    "give each ReplicatedJob an entry of its own",
)
JOB_WITH_GROUP_FIELDS = Rule(
    "job-with-group-fields",
    "spec.scheduling.replicatedJobs[].job",
    "cannot be set together with the entry's own schedulingPolicy, schedulingConstraints or disruptionMode",
    "move them into job",
)
GANG_SEQUENCED = Rule(
    "gang-sequenced",
    "schedulingPolicy.gang",
    "would wait for pods that are created only after its own first pods run",
    "with dependsOn or InOrder use spec.scheduling: {} (a gang per ReplicatedJob), or an entry per ReplicatedJob",
)
BASIC_DISRUPTION_ALL = Rule(
    "basic-disruption-all",
    "disruptionMode.all",
    "is not supported with the basic policy",
    "use gang, or disruptionMode: {single: {}}",
)
PRIORITY_CLASS_DIFFERS = Rule(
    "priority-class-differs",
    "spec.replicatedJobs[].template.spec.template.spec.priorityClassName",
    "differs among the ReplicatedJobs; a Workload takes one",
    "give every pod template the same priorityClassName, or none",
)
SCHEDULER_NAME_DIFFERS = Rule(
    "scheduler-name-differs",
    "spec.replicatedJobs[].template.spec.template.spec.schedulerName",
    "differs within one pod group, which would never be scheduled",
    "give every pod template of the group the same schedulerName, or an entry of its own",
)
TOO_MANY_TEMPLATES = Rule(
    "too-many-templates",
    "spec.scheduling",
    "needs more pod group templates than a Workload holds",
    "put several ReplicatedJobs into one entry, or split the JobSet",
)
TEMPLATE_NAME_TAKEN = Rule(
    "template-name-taken",
    "spec.scheduling.replicatedJobs[].targetReplicatedJobs",
    "makes the same pod group template name as another entry",
    "rename a ReplicatedJob, or list the targets in another order",
)
NATIVE_SCHEDULING = Rule(
    "native-scheduling",
    "spec.replicatedJobs[].template.spec",
    "has scheduling of its own, which spec.scheduling of the JobSet replaces",
    "remove it from the template, or remove spec.scheduling",
)
EXCLUSIVE_PLACEMENT_GANG = Rule(
    "exclusive-placement-gang",
    "metadata.annotations[alpha.jobset.sigs.k8s.io/exclusive-topology]",
    "deadlocks with a gang: followers are admitted only after their leader is scheduled, and a gang waits for all",
    "use schedulingConstraints: {topology: [{key: ...}]} instead of the annotation",
)
EXCLUSIVE_PLACEMENT_INDEX = Rule(
    "exclusive-placement-index",
    "spec.replicatedJobs[].template.spec.completionMode",
    "must be Indexed for exclusive placement: the pod of index 0 leads, and without one no pod is ever made",
    "set Indexed, or remove the annotation alpha.jobset.sigs.k8s.io/exclusive-topology",
)

# Changes.
IMMUTABLE = Rule(
    "immutable",
    "network, successPolicy, failurePolicy, startupPolicy, coordinator, managedBy, volumeClaimPolicies, scheduling",
    "Value is immutable",
    "delete the JobSet and create it anew",
    "update",
)
IMMUTABLE_REPLICATED_JOB = Rule(
    "immutable-replicated-job",
    "spec.replicatedJobs",
    "field is immutable",
    "delete the JobSet and create it anew",
    "update",
)
ELASTIC_COUNTS = Rule(
    "elastic-counts",
    "spec.replicatedJobs[].template.spec",
    "must change parallelism and completions to the same number, 1 or more",
    "set both to one value",
    "update",
)
ELASTIC_FINISHED = Rule(
    "elastic-finished",
    "spec.replicatedJobs[].template.spec.parallelism",
    "cannot change: the JobSet is finished",
    "create a new JobSet",
    "update",
)

# Asked of the API server.
JOB_TEMPLATE = Rule(
    "job-template",
    "spec.replicatedJobs[].template",
    "makes Jobs that Kubernetes refuses",
    "correct the template: it is that of a Job of batch/v1",
    "cluster",
)
JOB_TEMPLATE_UNTRIED = Rule(
    "job-template-untried",
    "spec.replicatedJobs[].template",
    "could not be tried on the API server, so the JobSet is admitted without",
    "look at the JobSet's condition Blocked once it is there",
    "cluster",
)

RULES: Mapping[str, Rule] = {rule.code: rule for rule in list(globals().values()) if isinstance(rule, Rule)}

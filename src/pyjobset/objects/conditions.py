"""Condition types, reasons, event reasons and terminal states of a JobSet, exact words."""

# Condition types
COMPLETED = "Completed"
FAILED = "Failed"
SUSPENDED = "Suspended"
STARTUP_POLICY_IN_PROGRESS = "StartupPolicyInProgress"
STARTUP_POLICY_COMPLETED = "StartupPolicyCompleted"
RESTARTING_JOBSET = "RestartingJobSet"
POD_GROUPS_SCHEDULED = "PodGroupsScheduled"  # ours (decision 26)
SCHEDULING_DEGRADED = "SchedulingDegraded"  # ours (decision 22)
EXCLUSIVE_PLACEMENT_DEGRADED = "ExclusivePlacementDegraded"  # ours: followers cannot be put beside their leader
LEADERS_SCHEDULED = "LeadersScheduled"  # ours: Jobs of exclusive placement wait for a free domain
BLOCKED = "Blocked"  # ours (decisions 11 to 13, 33): the API server refuses an object that the JobSet needs

# Condition reasons
ALL_JOBS_COMPLETED = "AllJobsCompleted"
FAILED_JOBS = "FailedJobs"
FAIL_JOBSET_ACTION = "FailJobSetFailurePolicyAction"
DEADLINE_EXCEEDED = "DeadlineExceeded"
REACHED_MAX_RESTARTS = "ReachedMaxRestarts"
DEFAULT_FAILURE_POLICY = "DefaultFailurePolicy"
FAILURE_POLICY_PREFIX = "FailurePolicy_"  # and the name of the rule
JOBS_READY = "JobsReady"
JOBSET_FAILED = "JobSetFailed"
JOBSET_COMPLETED = "JobSetCompleted"
JOBSET_SUSPENDED = "JobSetSuspended"
IN_ORDER_IN_PROGRESS = "InOrderStartupPolicyInProgress"
IN_ORDER_COMPLETED = "InOrderStartupPolicyCompleted"
FIELDS_DROPPED = "FieldsDropped"
API_NOT_SERVED = "APINotServed"
OBJECTS_DRIFTED = "ObjectsDrifted"
RESTORED = "Restored"
REFUSED = "Refused"
UNBLOCKED = "Unblocked"
ALL_SCHEDULED = "AllPodGroupsScheduled"
POD_GROUP_PENDING = "PodGroupPending"
POD_GROUP_UNSCHEDULABLE = "PodGroupUnschedulable"
POD_GROUP_INCOMPLETE = "PodGroupIncomplete"
POD_GROUP_PREEMPTED = "PodGroupPreempted"
POD_GROUP_QUORUM_OUT_OF_REACH = "PodGroupQuorumOutOfReach"
POD_GROUP_TERMINATING = "PodGroupTerminating"
ALL_LEADERS_SCHEDULED = "AllLeadersScheduled"
LEADER_UNSCHEDULABLE = "LeaderUnschedulable"
SUSPENDED_JOBS = "SuspendedJobs"
RESUME_JOBS = "ResumeJobs"

TOPOLOGY_LABEL_MISSING = "TopologyLabelMissing"

# Of a pod
DISRUPTION_TARGET = "DisruptionTarget"
EXCLUSIVE_PLACEMENT_VIOLATION = "ExclusivePlacementViolation"

# Event reasons
JOB_CREATION_FAILED = "JobCreationFailed"
HEADLESS_SERVICE_CREATION_FAILED = "HeadlessServiceCreationFailed"
PVC_CREATION_FAILED = "PVCCreationFailed"
SCHEDULING_OBJECTS_RECONCILE_FAILED = "SchedulingObjectsReconcileFailed"


def action_event(action: str) -> str:
    """The reason of the event that tells of a failure policy action, such as RestartJob."""
    return f"{action}FailurePolicyAction"


# status.terminalState
TERMINAL_COMPLETED = "Completed"
TERMINAL_FAILED = "Failed"

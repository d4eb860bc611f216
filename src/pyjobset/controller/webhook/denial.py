"""How a refusal reads: problems as a Status 422 Invalid in Kubernetes' own words. Pure; called by webhook.admission.

kubectl prints the causes as it prints those of native types, `spec.replicas: Invalid value: -1: must be ...`; our hint
and the rule's code stand behind. Other clients find path and kind of each problem in `details.causes`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from pyjobset.controller.webhook.review import Cause, Details, Response, Status
from pyjobset.errors import Problem
from pyjobset.objects.jobset import GROUP, KIND
from pyjobset.rules import registry
from pyjobset.rules.rule import Rule, shortened

INVALID_CODE = 422
NAME_LENGTH_MAX = 253
"""Of any object of the API. Names are judged here before the API server does it."""
BUG_CODE = 500

_WORDS: Mapping[str, tuple[str, tuple[Rule, ...]]] = {
    "FieldValueRequired": (
        "Required value",
        (registry.REQUIRED_FIELD, registry.NAME_REQUIRED, registry.COMPLETIONS_REQUIRED),
    ),
    "FieldValueDuplicate": ("Duplicate value", (registry.DUPLICATE, registry.TARGET_TWICE)),
    "FieldValueNotSupported": ("Unsupported value", (registry.UNSUPPORTED_VALUE,)),
    "FieldValueNotFound": ("Not found", (registry.UNKNOWN_REPLICATED_JOB,)),
    "FieldValueTooLong": ("Too long", (registry.TOO_LONG,)),
    "FieldValueTooMany": ("Too many", (registry.TOO_MANY_ITEMS, registry.TOO_MANY_TEMPLATES)),
    "FieldValueTypeInvalid": ("Invalid value", (registry.WRONG_TYPE, registry.NULL_VALUE, registry.NOT_AN_OBJECT)),
    "FieldValueForbidden": (
        "Forbidden",
        (
            registry.UNKNOWN_FIELD,
            registry.DEPENDS_ON_FIRST,
            registry.RESTART_JOB_GATE,
            registry.IN_PLACE_RESTART_GATE,
            registry.ACTIVE_DEADLINE_GATE,
            registry.SCHEDULING_GATE,
            registry.SCHEDULING_TWO_MODELS,
            registry.JOB_WITH_GROUP_FIELDS,
            registry.MIN_COUNT_COMPUTED,
            registry.CLAIM_TEMPLATE_NAMESPACE,
            registry.NATIVE_SCHEDULING,
            registry.EXCLUSIVE_PLACEMENT_GANG,
        ),
    ),
}
"""metav1.CauseType -> the words of k8s.io/apimachinery's field errors, and the rules that are of that kind."""
_OF_RULE = {rule.code: (reason, words) for reason, (words, rules) in _WORDS.items() for rule in rules}
_OTHERS = ("FieldValueInvalid", "Invalid value")
_WITHOUT_VALUE = ("FieldValueRequired", "FieldValueForbidden")


def denied(uid: str, name: str, problems: Sequence[Problem]) -> Response:
    """422 with every problem."""
    name = shortened(name, NAME_LENGTH_MAX)
    causes = tuple(_causes(problems))
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f"{KIND}.{GROUP} {_quoted(name)} is invalid: {listed}"
    status = Status(message, "Invalid", INVALID_CODE, details=Details(name, GROUP, KIND, causes))
    return Response(uid, allowed=False, status=status)


def failed(uid: str) -> Response:
    """Our own bug: nothing passes that was not judged, and the log says the rest."""
    message = "the webhook failed: this is a bug of pyjobset, its log has the details"
    return Response(uid, allowed=False, status=Status(message, "InternalError", BUG_CODE))


def sentence(problem: Problem) -> str:
    """What a person reads of a problem, the value aside."""
    return f"{problem.message}; hint: {problem.hint} [{problem.code}]"


def _causes(problems: Sequence[Problem]) -> Iterator[Cause]:
    for problem in problems:
        reason, words = _OF_RULE.get(problem.code, _OTHERS)
        shown = "" if problem.value is None or reason in _WITHOUT_VALUE else f"{_quoted(problem.value)}: "
        yield Cause(reason, f"{words}: {shown}{sentence(problem)}", problem.path)


def _quoted(value: object) -> str:
    """As Go's %q: printable text as it is, and nothing that could move the cursor of a terminal."""
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())

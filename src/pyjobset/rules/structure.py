"""The rules of structure and schema, one field at a time: found by rules.parse, before anything looks at two fields.

A part of the table in rules.registry, from where everybody takes them. The API server checks the same by the CRD.
"""

from pyjobset.rules.rule import Rule

NOT_AN_OBJECT = Rule(
    "not-an-object",
    "manifest",
    "must be an object",
    "a JobSet starts with apiVersion, kind, metadata and spec",
    "parse",
)
WRONG_API_VERSION = Rule(
    "wrong-api-version", "apiVersion", "is not the one of JobSet", "write apiVersion: jobset.x-k8s.io/v1alpha2", "parse"
)
WRONG_KIND = Rule("wrong-kind", "kind", "is not JobSet", "write kind: JobSet", "parse")
NAME_REQUIRED = Rule(
    "name-required", "metadata.name", "must be set, or metadata.generateName", "write metadata: {name: ...}", "parse"
)
REQUIRED_FIELD = Rule("required-field", "any field", "must be set", "add the field", "parse")
UNKNOWN_FIELD = Rule(
    "unknown-field", "any field", "is not a field of the API", "remove it, or correct its spelling", "parse"
)
WRONG_TYPE = Rule("wrong-type", "any field", "has the wrong type", "write a value of the field's type", "parse")
NULL_VALUE = Rule("null-value", "any list item", "must not be null", "remove the item, or write a value", "parse")
NUMBER_RANGE = Rule(
    "number-range", "any integer", "does not fit the field's integer type", "write a number in the range", "parse"
)
TOO_DEEP = Rule("too-deep", "any field", "is nested too deeply", "a JobSet needs about 20 levels", "parse")
TOO_LARGE = Rule("too-large", "manifest", "is too large", "the API server refuses requests above 3 MiB", "parse")
TOO_SMALL = Rule("too-small", "any integer", "is below the smallest value allowed", "write a larger number", "parse")
TOO_LONG = Rule("too-long", "any string", "is longer than allowed", "write a shorter one", "parse")
TOO_MANY_ITEMS = Rule("too-many-items", "any list", "has more items than allowed", "remove some items", "parse")
TOO_FEW_ITEMS = Rule("too-few-items", "any list", "has fewer items than needed", "add an item", "parse")
UNSUPPORTED_VALUE = Rule(
    "unsupported-value", "any enumeration", "is not one of the values allowed", "write one of them", "parse"
)
DUPLICATE = Rule("duplicate", "any list of names", "is in the list more than once", "keep one of them", "parse")

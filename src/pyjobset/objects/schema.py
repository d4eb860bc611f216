"""How a field of a struct says what its JSON schema has beyond its type.

scripts/crd reads it to write the CRD, rules.fields to judge a manifest without a cluster as the CRD would. Nothing here
is enforced while decoding: an object that was stored long ago must stay readable. The text below a field is its
description in the CRD. CEL rules, which look at several fields at once, are in scripts/crd/rules.py.
"""

from msgspec import Meta


def schema(**keywords: object) -> Meta:
    """JSON Schema keywords as they are spelled there, and a few that the generator resolves:

    `required=True`: the property must be there. `listType`, `listMapKeys`: the x-kubernetes- keywords (a list is
    atomic unless it says otherwise). `native`: a schema of Kubernetes by its OpenAPI name. `without`: properties of
    the field's type that are not offered here, as paths. An integer is int32 unless `format` says otherwise.
    """
    return Meta(extra_json_schema=keywords)

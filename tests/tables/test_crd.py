"""The CRD that is stored is the one that the structs and Kubernetes' schemas give, and the API server can take it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import generate
import msgspec
import pytest
import yaml
from crd import definition, native, snapshot, structs
from msgspec import inspect

from pyjobset.objects.jobset import JobSet
from pyjobset.objects.meta import ObjectMeta, Struct
from pyjobset.objects.schema import schema
from pyjobset.rules.defaults import with_defaults

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / definition.PATH).read_text(encoding="utf-8")
CRD: dict[str, Any] = yaml.load(TEXT, Loader=yaml.CSafeLoader)
VERSION: dict[str, Any] = CRD["spec"]["versions"][0]
SCHEMA: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]

CLIENT_SIDE_APPLY_BYTES_MAX = 262_144
"""All annotations of an object together; kubectl apply keeps the whole object in one."""

KEYWORDS = {
    "additionalProperties", "default", "description", "enum", "format", "items", "maxItems", "maxLength",
    "minItems", "minimum", "pattern", "properties", "required", "type", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
}  # fmt: skip
"""What a structural schema may say. Not among them: $ref, anyOf, oneOf, x-kubernetes-preserve-unknown-fields."""


def at(*path: str) -> dict[str, Any]:
    """The schema of a field; the items of a list are passed through."""
    node = SCHEMA
    for name in path:
        node = node.get("items", node)["properties"][name]
    return node


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield from nodes(node[keyword], f"{path}[]")


def test_the_stored_file_is_up_to_date() -> None:
    assert definition.files() == {definition.PATH: TEXT}


def test_check_notices_a_changed_file_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["generate.py"])
    assert generate.main() == 0
    monkeypatch.setattr("sys.argv", ["generate.py", "--check"])
    assert generate.main() == 0
    stored = tmp_path / definition.PATH
    stored.write_text(TEXT.replace("minimum: 0", "minimum: 1", 1), encoding="utf-8")
    changed = stored.read_text(encoding="utf-8")
    assert generate.main() == 1
    assert stored.read_text(encoding="utf-8") == changed
    assert f"{definition.PATH} is not up to date" in capsys.readouterr().out


def test_the_names_columns_and_subresources() -> None:
    assert CRD["metadata"] == {"name": "jobsets.jobset.x-k8s.io"}
    assert CRD["spec"]["names"] == {
        "kind": "JobSet",
        "listKind": "JobSetList",
        "plural": "jobsets",
        "singular": "jobset",
    }
    assert VERSION["subresources"] == {"status": {}}
    assert [column["name"] for column in VERSION["additionalPrinterColumns"]] == [
        "TerminalState", "Restarts", "Completed", "Suspended", "Age",
    ]  # fmt: skip


def test_client_side_apply_can_keep_it_in_an_annotation() -> None:
    assert len(json.dumps(CRD, separators=(",", ":"))) < CLIENT_SIDE_APPLY_BYTES_MAX


def test_the_schema_is_structural() -> None:
    for path, node in nodes(SCHEMA):
        assert node.keys() <= KEYWORDS, path
        assert ("type" in node) != ("x-kubernetes-int-or-string" in node), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert set(node.get("required", [])) <= node.get("properties", {}).keys(), path
        if node.get("type") == "object" and "properties" not in node:
            assert "default" not in node, path


def test_every_list_says_how_it_is_merged() -> None:
    lists = [(path, node) for path, node in nodes(SCHEMA) if node.get("type") == "array"]
    assert len(lists) > 100
    for path, node in lists:
        assert node["x-kubernetes-list-type"] in ("atomic", "set", "map"), path
        assert ("x-kubernetes-list-map-keys" in node) == (node["x-kubernetes-list-type"] == "map"), path
        for key in node.get("x-kubernetes-list-map-keys", []):
            item = node["items"]
            assert key in item.get("required", []) or "default" in item["properties"][key], f"{path}: {key}"


def own_parts(type_: inspect.Type, node: dict[str, Any], path: str = "") -> Iterator[tuple[str, set[str], set[str]]]:
    """For each struct: its path, the wire names of its fields, the properties of its schema."""
    match type_:
        case inspect.Metadata(type=inner):
            yield from own_parts(inner, node, path)
        case inspect.UnionType(types=members):
            for member in members:
                yield from own_parts(member, node, path)
        case inspect.VarTupleType(item_type=item):
            yield from own_parts(item, node["items"], f"{path}[]")
        case inspect.StructType(fields=fields):
            yield path, {field.encode_name for field in fields}, set(node.get("properties", {}))
            for field in fields:
                if field.encode_name in node.get("properties", {}):
                    yield from own_parts(
                        field.type, node["properties"][field.encode_name], f"{path}.{field.encode_name}"
                    )


def test_the_schema_has_the_fields_of_the_structs_and_no_others() -> None:
    expected_differences = {
        "": {"metadata"},  # every object has it
        ".spec.scheduling.schedulingPolicy.gang": {"minCount"},  # computed for these
        ".spec.scheduling.replicatedJobs[].schedulingPolicy.gang": {"minCount"},
    }
    parts = list(own_parts(inspect.type_info(JobSet), SCHEMA))
    assert len(parts) > 30
    for path, fields, properties in parts:
        assert fields ^ properties == expected_differences.get(path, set()), path


def test_every_field_of_ours_is_described() -> None:
    for path, _, properties in own_parts(inspect.type_info(JobSet), SCHEMA):
        if path == ".status.conditions[]":
            continue  # Kubernetes' own type
        names = path.replace("[]", "").split(".")[1:]
        for name in properties:
            assert at(*names, name)["description"].endswith("."), f"{path}.{name}"


def test_what_kubernetes_owns_is_not_described() -> None:
    template = at("spec", "replicatedJobs", "template")
    assert [path for path, node in nodes(template) if "description" in node] == [""]


def defaulted(node: dict[str, Any], value: Any) -> Any:
    """`value` with the defaults of its schema, as the API server fills them in."""
    if isinstance(value, dict):
        properties = node.get("properties", {})
        value = {name: p["default"] for name, p in properties.items() if "default" in p} | value
        return {name: defaulted(properties.get(name, {}), part) for name, part in value.items()}
    if isinstance(value, list):
        return [defaulted(node.get("items", {}), part) for part in value]
    return value


def test_the_defaults_of_the_schema_are_those_of_the_rules() -> None:
    job = {"completionMode": "Indexed", "template": {"spec": {"restartPolicy": "OnFailure"}}}
    manifest = {
        "metadata": {"name": "js"},
        "spec": {
            "replicatedJobs": [{"name": "w", "template": {"spec": job}}],
            "failurePolicy": {},
            "coordinator": {"replicatedJob": "w"},
            "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "c"}}]}],
        },
    }
    stored = defaulted(SCHEMA, manifest)
    decoded = msgspec.convert(stored, JobSet)
    assert decoded.spec == with_defaults(msgspec.convert(manifest, JobSet)).spec
    assert stored["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert stored["spec"]["failurePolicy"] == {"maxRestarts": 0, "restartStrategy": "Recreate"}
    assert stored["spec"]["replicatedJobs"][0]["groupName"] == "default"
    assert defaulted(SCHEMA, {})["spec"] == {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All"},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
    }


def test_decoding_enforces_nothing() -> None:
    """What was stored before a limit existed must stay readable."""
    manifest = {
        "metadata": {"name": "js"},
        "spec": {
            "replicatedJobs": [{"name": "w" * 100, "replicas": -1}],
            "failurePolicy": {"maxRestarts": -1, "rules": [{"action": "Nothing"}] * 100},
            "scheduling": {"schedulingPolicy": {"basic": {}, "gang": {}}, "replicatedJobs": []},
        },
    }
    spec = msgspec.convert(manifest, JobSet).spec
    assert spec.failure_policy is not None
    assert spec.failure_policy.max_restarts == spec.replicated_jobs[0].replicas == -1


@pytest.mark.parametrize(
    "path",
    [
        ("replicatedJobs", "template", "metadata"),
        ("replicatedJobs", "template", "spec", "template", "metadata"),
        ("volumeClaimPolicies", "templates", "metadata"),
    ],
    ids=".".join,
)
def test_the_metadata_of_a_template_is_what_a_user_chooses(path: tuple[str, ...]) -> None:
    assert set(at("spec", *path)["properties"]) == {"annotations", "finalizers", "labels", "name", "namespace"}


def test_native_scheduling_of_jobs_and_pods_survives() -> None:
    job = at("spec", "replicatedJobs", "template", "spec")["properties"]
    assert job["scheduling"]["properties"].keys() >= {"schedulingPolicy", "disruptionMode"}
    pod = job["template"]["properties"]["spec"]["properties"]
    assert pod["schedulingGroup"]["properties"].keys() == {"podGroupName"}


def test_kubernetes_judges_the_values_of_a_job_template() -> None:
    """The Job's own API server knows more values than our snapshot does, and has its own defaults."""
    template = at("spec", "replicatedJobs", "template")
    assert not [path for path, node in nodes(template) if "enum" in node]
    defaults = {path.rsplit(".", 2)[-1]: node["default"] for path, node in nodes(template) if "default" in node}
    assert defaults == {"protocol": "TCP", "name": ""}


@pytest.mark.parametrize(
    "quantity", ["0", "1", "1.5", ".5", "+1", "-1", "100m", "64Mi", "5Gi", "1e3", "1E-3", "2k", "1."]
)
def test_quantities_that_kubernetes_takes_match(quantity: str) -> None:
    pattern = native.structural(native.QUANTITY)["pattern"]
    assert msgspec.json.decode(msgspec.json.encode(quantity), type=Annotated[str, msgspec.Meta(pattern=pattern)])


@pytest.mark.parametrize("quantity", ["", "5 Gi", "Gi", "1GB", "1,5", "0x1", "1e", "--1", "1ki"])
def test_quantities_that_kubernetes_refuses_do_not_match(quantity: str) -> None:
    pattern = native.structural(native.QUANTITY)["pattern"]
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(quantity), type=Annotated[str, msgspec.Meta(pattern=pattern)])


def test_the_snapshot_takes_what_is_referred_to_without_its_texts() -> None:
    name = "io.k8s.api.core.v1.Text"
    root = {
        "description": "not taken",
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "not taken"},
            "text": {"$ref": snapshot.REF + name},
        },
    }
    document = {
        "info": {"version": "v1.99"},
        "components": {"schemas": {**dict.fromkeys(snapshot.ROOTS, root), name: {"type": "string"}, "Other": {}}},
    }
    taken = snapshot.take([document])
    assert taken["kubernetes"] == "v1.99"
    assert taken["schemas"].keys() == {*snapshot.ROOTS, name}
    assert taken["schemas"][snapshot.ROOTS[0]] == {
        "type": "object",
        "properties": {"description": {"type": "string"}, "text": {"$ref": snapshot.REF + name}},
    }


class Undescribed(Struct, frozen=True):
    name: str = ""


class Untyped(Struct, frozen=True):
    anything: dict[str, Any] = {}
    """A mapping, and nothing says of what."""


class Described(Struct, frozen=True):
    metadata: ObjectMeta
    count: Annotated[int | None, schema(required=True, minimum=1, format="int64")] = None
    """Text
    over two lines."""
    names: tuple[Annotated[str, schema(maxLength=3)], ...] = ()
    """Names."""


def test_a_struct_becomes_a_schema() -> None:
    assert structs.of(Described) == {
        "type": "object",
        "properties": {
            "count": {"description": "Text over two lines.", "type": "integer", "format": "int64", "minimum": 1},
            "names": {
                "description": "Names.",
                "type": "array",
                "items": {"type": "string", "maxLength": 3},
                "x-kubernetes-list-type": "atomic",
            },
        },
        "required": ["count"],
    }


@pytest.mark.parametrize(("struct", "error"), [(Undescribed, KeyError), (Untyped, TypeError)])
def test_the_generator_stops_where_it_would_have_to_guess(struct: type[Struct], error: type[Exception]) -> None:
    with pytest.raises(error):
        structs.of(struct)

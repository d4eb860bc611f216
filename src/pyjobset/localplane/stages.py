"""How simulated pods behave: the stages that kwok plays. Pure; `plane.py` writes them to the plane's directory.

A pod runs as long as its command says (`sleep 30s`, `sh -c "sleep 5; exit 3"`) or an annotation; a command that says
nothing runs for ever. docs/local-plane.md has the table. Times are kept in the pod, not in kwok: a pod that changes, or
a kwok that restarts, does not start the clock again.
"""

from typing import Any

import yaml

from pyjobset.localplane.options import NodeLayout

Manifest = dict[str, Any]

PREFIX = "plane.pyjobset/"
RUN_FOR = PREFIX + "run-for"
FAIL_AFTER = PREFIX + "fail-after"
EXIT_CODE = PREFIX + "exit-code"
READY_AFTER = PREFIX + "ready-after"
TERMINATE_AFTER = PREFIX + "terminate-after"

# jq. `seconds` is null for what is no duration, and null means for ever.
# Kubernetes keeps whole seconds, so a start less than two seconds ago counts as now.
_JQ = rf"""
def seconds:
  if test("^([0-9]+([.][0-9]+)?(ms|[smhd])?)+$") then
    [scan("([0-9]+(?:[.][0-9]+)?)(ms|[smhd])?")
      | (.[0] | tonumber) * {{"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}}[.[1] // "s"]] | add
  else null end;
def total: if any(. == null) then null else add end;
def script_seconds:
  if test("\\b(while|until|for)\\b") then null
  elif test("\\b(sleep|exit|echo|true|false)\\b") then
    ([scan("\\bsleep\\s+([^\\s;&|)]+)")[0] | seconds] | if . == [] then 0 else total end)
  else null end;
def container_seconds:
  ((.command // []) + (.args // [])) as $words
  | ($words[0] // "" | split("/") | last // "") as $program
  | if $program == "sleep" then [$words[1:][] | seconds] | total
    elif $program | IN("true", "false", "echo") then 0
    elif $program | IN("sh", "bash", "ash", "dash") then
      (first(range(1; $words | length) as $i | select($words[$i] | test("^-[a-z]*c$")) | $words[$i + 1]) // ""
        | script_seconds)
    else null end;
def note($name): (.metadata.annotations // {{}})[$name];
def run_seconds:
  if note("{FAIL_AFTER}") then note("{FAIL_AFTER}") | seconds
  elif note("{RUN_FOR}") then note("{RUN_FOR}") | seconds
  else [.spec.containers[] | container_seconds] | if any(. == null) then null else max end end;
def ready_seconds: note("{READY_AFTER}") // "0" | seconds // 0;
def ready: any(.status.conditions[]?; .type == "Ready" and .status == "True");
def delay($seconds; $since):
  (now - $since) as $passed
  | [$seconds - (if $passed < 2 then 0 else $passed end), 0] | max | "\(. * 1000 | floor)ms";
def started: .status.startTime | fromdate;
def deleted: (.metadata.deletionTimestamp | fromdate) - (.metadata.deletionGracePeriodSeconds // 0);
"""

_ALIVE: Manifest = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}

_CONDITIONS = """
conditions:
{{ range (list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready") }}
- type: {{ . | Quote }}
  status: {{ if or $ready (eq . "PodReadyToStartContainers" "Initialized") }}"True"{{ else }}"False"{{ end }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
"""

_RUNNING = (
    _CONDITIONS
    + """
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: {{ $ready }}
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $started | Quote }}}}
{{ end }}
phase: Running
startTime: {{ $started | Quote }}
"""
)

_START = "{{ $now := Now }}{{ $started := Now }}"

_ADDRESSES = """
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName (or .spec.hostNetwork false) .metadata.uid .metadata.name .metadata.namespace |
  Quote }}
"""

# The exit code is the annotation's, else the one in the container's own command, else 0 or what `default_code` says.
_ENDED = """
{{ $now := Now }}{{ $pod := . }}{{ $failed := false }}
{{ $notes := .metadata.annotations | default dict }}
conditions:
{{ range (list "ContainersReady" "Ready") }}
- type: {{ . | Quote }}
  status: "False"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
{{ $line := join " " (concat (.command | default list) (.args | default list)) }}
{{ $code := CODE }}
{{ if ne $code 0 }}{{ $failed = true }}{{ end }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{ $code }}
      reason: {{ if eq $code 0 }}Completed{{ else }}Error{{ end }}
      startedAt: {{ $pod.status.startTime | default $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
phase: {{ if $failed }}Failed{{ else }}Succeeded{{ end }}
"""

_COMMAND_CODE = f"""int (
  ternary (regexFind `^[0-9]{{1,3}}$` (index $notes "{EXIT_CODE}" | default "") | default "1") ""
    (hasKey $notes "{EXIT_CODE}")
  | default (ternary "1" "" (hasKey $notes "{FAIL_AFTER}"))
  | default (regexFind `[0-9]+` (regexFind `\\bexit +[0-9]+` $line))
  | default (ternary "1" "0" (regexMatch `(^|[\\s/;&|])false\\s*$` $line))
)"""
_SIGTERM_CODE = "143"


def stages(kubelet_version: str) -> list[Manifest]:
    """The stages in kwok's format. At most one matches a pod at any time: kwok would choose among several by chance."""
    pending: Manifest = {"key": ".status.phase", "operator": "In", "values": ["Pending"]}
    running: Manifest = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
    slow: Manifest = {"key": f'.metadata.annotations["{READY_AFTER}"]', "operator": "Exists"}
    at_once: Manifest = {**slow, "operator": "DoesNotExist"}
    becomes_ready = _true("(ready | not) and (run_seconds == null or ready_seconds <= run_seconds)")
    finishes = _true("run_seconds != null and (ready or ready_seconds > run_seconds)")
    ended = _ENDED.replace("CODE", _COMMAND_CODE)
    terminated = _ENDED.replace("CODE", _SIGTERM_CODE)
    return [
        _node(kubelet_version),
        _pod("pod-runs", [_ALIVE, pending, at_once], _status(_START + "{{ $ready := true }}" + _RUNNING + _ADDRESSES)),
        _pod("pod-starts", [_ALIVE, pending, slow], _status(_START + "{{ $ready := false }}" + _RUNNING + _ADDRESSES)),
        _pod(
            "pod-becomes-ready",
            [_ALIVE, running, slow, becomes_ready],
            _status("{{ $now := Now }}{{ $started := .status.startTime }}{{ $ready := true }}" + _RUNNING),
            delay="delay(ready_seconds; started)",
        ),
        _pod("pod-finishes", [_ALIVE, running, finishes], _status(ended), delay="delay(run_seconds; started)"),
        _pod(
            "pod-terminates",
            [{**_ALIVE, "operator": "Exists"}],
            _status(f'{{{{ if eq .status.phase "Running" }}}}{terminated}{{{{ else }}}}{{}}{{{{ end }}}}'),
            {"delete": True},
            delay=f'delay(note("{TERMINATE_AFTER}") // "0" | seconds // 0; deleted)',
        ),
    ]


def text(kubelet_version: str) -> str:
    """The stages as the file that kwok reads."""
    return yaml.safe_dump_all(stages(kubelet_version), sort_keys=False)


def _node(kubelet_version: str) -> Manifest:
    """Makes a node Ready, and again after it was found dead. What it has was said when it was created."""
    default = NodeLayout()
    resources = f'{{cpu: "{default.cpu}", memory: "{default.memory}", pods: "{default.pods}"}}'
    template = f"""
{{{{ $now := Now }}}}
conditions:
{{{{ range NodeConditions }}}}
- type: {{{{ .type | Quote }}}}
  status: {{{{ .status | Quote }}}}
  reason: {{{{ .reason | Quote }}}}
  message: {{{{ .message | Quote }}}}
  lastHeartbeatTime: {{{{ $now | Quote }}}}
  lastTransitionTime: {{{{ $now | Quote }}}}
{{{{ end }}}}
allocatable: {{{{ with .status.allocatable }}}}{{{{ toJson . }}}}{{{{ else }}}}{resources}{{{{ end }}}}
capacity: {{{{ with .status.capacity }}}}{{{{ toJson . }}}}{{{{ else }}}}{resources}{{{{ end }}}}
nodeInfo:
  architecture: amd64
  bootID: ""
  containerRuntimeVersion: kwok
  kernelVersion: kwok
  kubeProxyVersion: kwok
  kubeletVersion: {kubelet_version}
  machineID: ""
  operatingSystem: linux
  osImage: simulated
  systemUUID: ""
"""
    not_ready: Manifest = {
        "key": '.status.conditions.[] | select(.type == "Ready") | .status',
        "operator": "NotIn",
        "values": ["True"],
    }
    return _stage("node-is-ready", "Node", [not_ready], [_status(template)])


def _pod(name: str, selector: list[Manifest], *steps: Manifest, delay: str = "") -> Manifest:
    return _stage(name, "Pod", selector, list(steps), delay)


def _stage(name: str, kind: str, selector: list[Manifest], steps: list[Manifest], delay: str = "") -> Manifest:
    wait = {"delay": {"durationMilliseconds": 0, "durationFrom": {"jq": {"expression": _JQ + delay}}}}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": [{"jq": s} for s in selector]},
            **(wait if delay else {}),
            "steps": steps,
        },
    }


def _true(expression: str) -> Manifest:
    return {"key": _JQ + expression, "operator": "In", "values": ["true"]}


def _status(template: str) -> Manifest:
    return {"patch": {"subresource": "status", "root": "status", "template": template}}

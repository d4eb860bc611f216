{{/*
The objects of one file of deploy/, in the release's namespace and with Helm's labels. The chart has no copy of them:
what kustomize installs and what Helm installs cannot differ. Takes root, file, and annotations or namespace to add.
*/}}
{{- define "jobset.objects" -}}
{{- $root := .root -}}
{{- $annotations := .annotations | default dict -}}
{{- $namespace := .namespace | default "" -}}
{{- range $text := splitList "\n---\n" (required (printf "the chart lacks files/%s" .file) ($root.Files.Get (printf "files/%s" .file))) }}
{{- $object := $text | replace "jobset-system" $root.Release.Namespace | fromYaml }}
{{- if not $object.kind }}{{ fail $object.Error }}{{ end }}
{{- if $annotations }}{{ $_ := set $object.metadata "annotations" (merge (dict) $annotations ($object.metadata.annotations | default dict)) }}{{ end }}
{{- if and $namespace (ne $object.kind "ClusterRole") }}{{ $_ := set $object.metadata "namespace" $namespace }}{{ end }}
{{ include "jobset.object" (dict "root" $root "object" $object) }}
{{- end }}
{{- end }}

{{/* One object with Helm's labels. */}}
{{- define "jobset.object" -}}
{{- $labels := dict "app.kubernetes.io/name" "jobset" "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- $_ := set .object.metadata "labels" (merge (dict) (.object.metadata.labels | default dict) $labels) -}}
---
{{ toYaml .object }}
{{- end }}

{{/* A value that is given goes into the dict; one that is empty leaves it as it is. */}}
{{- define "jobset.put" -}}
{{- if .value }}{{ $_ := set .into .key .value }}{{ end -}}
{{- end }}

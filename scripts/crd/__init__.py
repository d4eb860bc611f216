"""Generates the CustomResourceDefinition of JobSet from the structs in pyjobset.objects and Kubernetes' own schemas.

`definition` puts it together; `structs` turns our types into schemas, `rules` holds the CEL rules, `native` turns the
stored schemas of Kubernetes into ones that a CRD may hold. `snapshot` refreshes those from a running API server.
"""

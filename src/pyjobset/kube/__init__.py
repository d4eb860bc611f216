"""The Kubernetes API client and its watch cache. Knows resources, not JobSets.

`requests`, `responses`, `events` and `kubeconfig` are pure; `transport` is the only module that uses the HTTP library;
`credentials` and `tls` say who we are; `client` ties them together; `cache` mirrors one resource of the server.
"""

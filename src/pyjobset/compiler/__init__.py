"""JobSet -> Workload, PodGroups, Service, claims and child Jobs. Pure: the same JobSet always gives the same objects.

`scheduling` says which PodGroups come out, `jobs` what a child Job carries, `jobset` puts it all in creation order.
The compiler assumes a JobSet that passed the rules, applies defaults where it reads, and never mutates its input.
"""

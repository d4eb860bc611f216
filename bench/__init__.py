"""Measures the controller on a real control plane: time, CPU, memory and requests, against a bare loop of POSTs.

Run by people with `make bench`. It prints figures and ratios next to what we want, and never fails because of one.
"""

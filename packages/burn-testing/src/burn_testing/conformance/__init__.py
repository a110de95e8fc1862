"""The acceptance test of a backend: every operation, sample, dtype and layout against a reference.

    pytest --pyargs burn_testing.conformance --burn-backend NAME

A backend other than flex is compared with flex. flex itself is compared with the decomposition of
derived operations, run in float64 on core primitives alone, and with the plain references of
`burn_testing.oracle` for the rest.
"""

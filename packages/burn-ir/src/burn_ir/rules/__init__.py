"""Shape and dtype rules: plain functions of specs and attributes, and the errors they raise.

A rule gets the inputs as `Spec` (None for an absent optional, a tuple of specs for a list), then
static attributes and extents. Dtypes of promoted inputs are already equal when it runs.
"""

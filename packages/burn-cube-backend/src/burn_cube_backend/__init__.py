"""The tensor backend written in burn-cube; reached by its entry points in `burn.backends`."""

"""A kernel language: `@cube` functions become a typed IR, the IR becomes native code."""

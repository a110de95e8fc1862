"""The flex backend: eager numpy, reached by its entry point alone."""

"""The front end: reads a Python function through `ast` and makes a kernel of it."""

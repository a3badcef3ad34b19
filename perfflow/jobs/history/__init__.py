"""The history of a project: runs collected in one store, trends read from it."""

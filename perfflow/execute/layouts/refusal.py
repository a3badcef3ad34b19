"""The error of an executable that cannot be linked with other layouts."""


class LayoutsRefusedError(Exception):
    """The executable cannot be linked with other layouts. The text is one sentence with the reason and the remedy."""

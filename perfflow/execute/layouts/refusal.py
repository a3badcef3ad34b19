"""Why no other layout of an executable can be linked."""


class LayoutsRefusedError(Exception):
    """No layouts can be drawn of this executable; the text is one sentence with the reason and what to do."""

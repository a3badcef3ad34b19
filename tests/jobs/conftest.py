from tests.session.conftest import project, tree

__all__ = ["project", "tree"]

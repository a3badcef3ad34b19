from tests.session.conftest import explains, project, tree

__all__ = ["explains", "project", "tree"]

from tests.session.conftest import project

__all__ = ["project"]

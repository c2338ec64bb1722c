"""Hidden groups in tables and series, and what each group looks like, with no bell curve or other shape assumed."""

__version__ = "0.2.0"

TYPE_CHECKING = False  # as type checkers know it; importing typing would take longer than the rest of a start
if TYPE_CHECKING:
    from latentviews._public import *  # noqa: F403
    from latentviews._public import __all__  # noqa: F401
else:

    def __getattr__(name: str) -> object:
        """A public name or a room; the first imports the library, so that what needs none of it starts at once."""
        from importlib import import_module
        from importlib.util import find_spec

        if name == "__all__" or not name.startswith("_"):
            public = import_module("latentviews._public")
            if name == "__all__" or name in public.__all__:
                return getattr(public, name)
            if find_spec(f"latentviews.{name}") is not None:
                return import_module(f"latentviews.{name}")
        raise AttributeError(f"module 'latentviews' has no attribute {name!r}")

    def __dir__() -> list[str]:
        """The public names, for completion."""
        return sorted([*globals(), *__getattr__("__all__")])

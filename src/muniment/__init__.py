"""Muniment: a web archiver that keeps pages exactly as servers sent them."""

__all__ = ["__version__"]

__version__ = "0.1.0"

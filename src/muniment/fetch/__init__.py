"""The HTTP engine: exact bytes over our own HTTP/1.1 reader."""

from muniment.fetch.addresses import address_class
from muniment.fetch.client import Client
from muniment.fetch.config import FetchConfig

__all__ = ["Client", "FetchConfig", "address_class"]

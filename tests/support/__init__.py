"""Shipped with the package so that others can test against it: factories, site servers, a frozen clock."""

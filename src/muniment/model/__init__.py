"""Frozen values: the words of the project, without behaviour beyond their own fields."""

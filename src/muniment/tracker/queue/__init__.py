"""The queue of pages: admitted, claimed, finished, given back."""

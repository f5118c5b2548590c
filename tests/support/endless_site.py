"""Sites with more addresses than pages, and sites whose pages look alike and are all worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from email.message import Message
from urllib.parse import parse_qs, urlsplit

from tests.support.gated_site import Answer, GatedSite

__all__ = ["EndlessSite", "archive", "calendar", "forum", "gallery", "loop", "shop"]

View = Callable[[str, dict[str, str]], str | bytes | None]
"""What a site shows for a path and its parameters; None for what it has not."""


class EndlessSite(GatedSite):
    """A site that is made while it is asked."""

    def __init__(self, view: View) -> None:
        super().__init__({})
        self._view = view

    def answer(self, path: str, headers: Message[str, str]) -> Answer:
        """What the view shows."""
        self.requests.append(path)
        split = urlsplit(path)
        given = {name: values[-1] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
        shown = self._view(split.path, given)
        if shown is None:
            return Answer("there is no such page", 404)
        if isinstance(shown, bytes):
            return Answer(shown, headers=(("Content-Type", "image/png"),))
        return Answer(shown)


def page(text: str, links: Iterable[str], more: str = "") -> str:
    """A page with a text and links."""
    listed = "".join(f'<li><a href="{link.replace("&", "&amp;")}">go on</a></li>' for link in links)
    return f"<!doctype html><title>A page</title><body><p>{text}</p>{more}<ul>{listed}</ul></body>"


def calendar(path: str, given: dict[str, str]) -> str | None:
    """Ten articles, and a calendar whose months lead to the next and the last one for ever."""
    if path == "/":
        articles = [f"/article/{word(number)}" for number in range(10)]
        return page("Welcome to our town", [*articles, "/calendar?month=0"])
    if path.startswith("/article/"):
        return page(f"An article about {path.rpartition('/')[2]}", ["/", "/calendar?month=0"])
    if path != "/calendar":
        return None
    month = int(given.get("month", "0"))
    days = [f"/calendar?month={month}&day={day}" for day in range(1, 29)] if "day" not in given else []
    return page(
        f"There is nothing in month {month}", [*days, f"/calendar?month={month + 1}", f"/calendar?month={month - 1}"]
    )


def shop(path: str, _given: dict[str, str], products: int = 500) -> str | None:
    """Products that differ in their names and numbers alone, by pages of fifty."""
    frame = "<p>Free delivery</p><p>Imprint of the shop</p><p>Add to basket</p>"
    if path == "/" or path.startswith("/list/"):
        at = int(path.rpartition("/")[2] or 0)
        numbers = range(at * 50, min(at * 50 + 50, products))
        further = [f"/list/{at + 1}"] if at * 50 + 50 < products else []
        return page("Our products", [*(f"/product/{number}" for number in numbers), *further], frame)
    if not path.startswith("/product/"):
        return None
    number = int(path.rpartition("/")[2])
    return page(f"Screw {word(number)}, article {number}, price {number % 7}", ["/"], frame)


def gallery(path: str, _given: dict[str, str], images: int = 120) -> str | bytes | None:
    """Pages without any text but the way to the next, each with an image of its own."""
    if path.startswith("/image/"):
        return b"\x89PNG\r\n\x1a\n" + path.encode()
    if path != "/" and not path.startswith("/view/"):
        return None
    at = int(path.rpartition("/")[2] or 0)
    return page("", [f"/view/{at + 1}"] if at + 1 < images else [], f'<img src="/image/{at}.png">')


def archive(path: str, _given: dict[str, str], lists: int = 150) -> str | None:
    """Lists that differ in numbers alone, each of which leads to two pages of its own."""
    if path == "/":
        return page("The archive", [f"/list/{number}" for number in range(lists)])
    number = int("".join(filter(str.isdigit, path)) or 0)
    if path.startswith("/list/"):
        return page(f"List {number} of {lists}", [f"/letter/{2 * number}", f"/letter/{2 * number + 1}"])
    return page(f"Dear {word(number)}, thank you for your letter", ["/"])


def loop(path: str, _given: dict[str, str]) -> str | None:
    """Pages with a relative link that any path is answered for."""
    if path == "/":
        return page("A site of old", ["/docs/en/"])
    return page("The manual in English", ["docs/en/", "/"])


def forum(path: str, given: dict[str, str]) -> str | None:
    """Thirty topics, each in all orders, and in each of them links to all orders."""
    if path == "/":
        return page("Our forum", [f"/topic?t={number}" for number in range(30)])
    if path != "/topic":
        return None
    number = int(given.get("t", "0"))
    orders = [
        f"/topic?t={number}&sort={key}&order={way}&days={days}"
        for key in ("date", "name", "votes")
        for way in ("up", "down")
        for days in range(20)
    ]
    return page(f"A topic about {word(number)}", ["/", f"/topic?t={number}", *orders])


def word(number: int) -> str:
    """A word for a number that is another one without its digits."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number, 12)
        letters = "ghijklmnopqr"[rest] + letters
    return f"{letters}ous"

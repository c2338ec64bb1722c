"""The elements of a page, which must all end."""

from html.parser import HTMLParser


class Outline(HTMLParser):
    """The elements that are open, those without an end aside."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

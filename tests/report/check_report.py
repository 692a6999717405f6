"""Reads report.html with Python's HTML parser: tags must match, nothing may be fetched or run, links must lead to files."""
import html.parser
import pathlib
import sys
import urllib.parse

VOID = {"meta", "link", "br", "img", "hr", "input"}
page = pathlib.Path(sys.argv[1])


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.headings, self.links, self.count = [], set(), [], [], {}

    def handle_startendtag(self, tag, attributes):
        self.attributes(tag, attributes)

    def handle_starttag(self, tag, attributes):
        self.attributes(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def attributes(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        assert tag not in ("script", "iframe", "object", "embed", "link", "base", "form", "img"), tag
        for name, value in attributes:
            assert not name.startswith("on"), name
            if name == "id":
                assert value not in self.ids, f"id {value} twice"
                self.ids.add(value)
            if name == "src":
                raise AssertionError(f"{tag} src={value}")
            if name in ("href", "xlink:href"):
                self.links.append((tag, value))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "title", "summary"):
            self.headings.append(data)


reader = Reader()
reader.feed(page.read_text(encoding="utf-8"))
reader.close()
assert not reader.open, reader.open
for tag, link in reader.links:
    if link.startswith("#"):
        assert link[1:] in reader.ids, link
        continue
    assert not urllib.parse.urlsplit(link).scheme and not link.startswith("/"), link
    assert (page.parent / urllib.parse.unquote(link)).is_file(), link
print("headings", "|".join(reader.headings))
print("svg", reader.count.get("svg", 0))
print("links", sum(1 for tag, link in reader.links if tag == "a"))

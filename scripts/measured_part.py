"""The part of a page of docs/measurements that a script measures, between two markers.

The text around it is written by hand and stays as it is.
"""


class MeasuredPart:
    """The part of `page` that `maker` makes. Refused before anything is measured, if the page has no place for it."""

    def __init__(self, page, maker):
        self.page = page
        self.begin, self.end = f"<!-- made by {maker} -->", f"<!-- end of {maker} -->"
        self._around()

    def _around(self):
        text = self.page.read_text()
        before, _, rest = text.partition(self.begin)
        _, _, after = rest.partition(self.end)
        if text.count(self.begin) != 1 or rest.count(self.end) != 1 or text.count(self.end) != 1:
            raise SystemExit(f"{self.page}: there must be one {self.begin} and behind it one {self.end}, each on a line of its own")
        return before, after

    def write(self, lines):
        """Replaces the part that was measured before, and is printed."""
        before, after = self._around()
        self.page.write_text("\n".join([before + self.begin, *lines, self.end]) + after)
        print("\n".join(lines))

"""Custom sections written in the text: `(@custom "name" (before code) "content")` (appendix, custom annotations)."""

from __future__ import annotations

from .cursor import Cursor
from .encode import SECTION_ORDER, CustomSection
from .lexer import Annotation


def custom_section(annotation: Annotation) -> CustomSection:
    """The section an annotation `@custom` describes; without a placement it goes behind all others."""
    cursor = Cursor(annotation.body)
    name = cursor.take_name("@custom annotation: a section name in quotation marks")
    relation, anchor = "after", "last"
    if cursor.texts[cursor.position] == "(":
        relation, anchor = _placement(cursor)
    content = cursor.take_strings()
    cursor.take_end()
    return CustomSection(name, content, relation, anchor)


def _placement(cursor: Cursor) -> tuple[str, str]:
    for relation, extreme in (("before", "first"), ("after", "last")):
        if cursor.try_open(relation):
            anchor = cursor.texts[cursor.position]
            if anchor != extreme and anchor not in SECTION_ORDER:
                raise cursor.unexpected(f"@custom annotation: a section kind or `{extreme}`")
            cursor.position += 1
            cursor.take_close()
            return relation, anchor
    raise cursor.unexpected("@custom annotation: `(before` or `(after`")

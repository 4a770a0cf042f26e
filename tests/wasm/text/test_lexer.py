"""Tokens, comments, annotations, strings and quoted identifiers."""

from __future__ import annotations

import pytest

from greenbeat.wasm.text import TextError, assemble
from greenbeat.wasm.text.lexer import decode_string, tokenize


def test_tokens() -> None:
    assert tokenize('(func $f "a b" i32.const -0x1)').texts == [
        "(",
        "func",
        "$f",
        '"a b"',
        "i32.const",
        "-0x1",
        ")",
        "",
    ]


def test_comments_are_skipped() -> None:
    source = "(;a;)(module;;b\r(;c (;nested;) ;; d;)\n;;e\n);;f"
    assert tokenize(source).texts == ["(", "module", ")", ""]


def test_line_and_column_count_every_line_end() -> None:
    tokens = tokenize("a\nb\r\nc\rd  e")
    places = [tokens.line_and_column(start) for start in tokens.starts]
    assert places == [(1, 1), (2, 1), (3, 1), (4, 1), (4, 4), (4, 5)]


def test_parentheses_are_matched() -> None:
    assert tokenize("(a (b) (c (d)))").closing == {0: 11, 2: 4, 5: 10, 7: 9}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'""', b""),
        (r'"plain"', b"plain"),
        (r'"\t\n\r\"\'\\"', b"\t\n\r\"'\\"),
        (r'"\00\fF"', b"\x00\xff"),
        (r'"\u{41}\u{1_F600}"', "A😀".encode()),
        ('"ä"', "ä".encode()),
        (r'"\u{d800}"', None),
        (r'"\u{110000}"', None),
    ],
)
def test_strings(text: str, value: bytes | None) -> None:
    assert decode_string(tokenize(text).texts[0]) == value


def test_quoted_identifiers_are_their_names() -> None:
    assert tokenize(r'$"a\62" $ab $"a b"').texts == ["$ab", "$ab", "$a b", ""]


def test_annotations_are_set_aside() -> None:
    tokens = tokenize('a (@one x "s" (y)) (@"t w o") b')
    assert tokens.texts == ["a", "b", ""]
    assert [(each.name, each.body.texts) for each in tokens.annotations[1]] == [
        ("one", ["x", '"s"', "(", "y", ")", ""]),
        ("t w o", [""]),
    ]


@pytest.mark.parametrize(
    ("source", "message", "line", "column"),
    [
        ("(func", "unclosed parenthesis", 1, 1),
        ("(func))", "no parenthesis is open", 1, 7),
        ("\n  (; a (; b ;)", "unclosed comment", 2, 3),
        ('(data "abc', "unclosed string", 1, 7),
        ('(data "ab\nc")', "unclosed string", 1, 7),
        ('(data "a\tc")', "illegal character '\\t' in string", 1, 9),
        (r'(data "ab\q")', "malformed escape in string", 1, 10),
        (r'(data "\u{d800}")', "not a Unicode scalar value", 1, 7),
        ("(func ä)", "illegal character 'ä'", 1, 7),
        ("(func\x00)", "illegal character", 1, 6),
        ('(data "a""b")', "unexpected token", 1, 7),
        ('(func $"")', "empty identifier", 1, 7),
        ("(func $)", "empty identifier", 1, 7),
        (r'(func $"\ff")', "malformed UTF-8 encoding in identifier", 1, 7),
        ("(@)", "empty annotation id", 1, 1),
        ("(@x (y)", "unclosed annotation `(@x`", 1, 1),
        ("(@x ä)", "illegal character", 1, 5),
        (r'(@"\ff")', "malformed UTF-8 encoding in annotation id", 1, 1),
        (b"(func)\n\xff", "malformed UTF-8 encoding", 2, 1),
        ("(func) ;; \ud800", "lone surrogate", 1, 11),
        (r'(import "\ff" "" (func))', "malformed UTF-8 encoding in name", 1, 9),
    ],
)
def test_errors(source: str | bytes, message: str, line: int, column: int) -> None:
    with pytest.raises(TextError) as caught:
        assemble(source)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"{line}:{column}: ")

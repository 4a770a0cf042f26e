"""Source text to tokens (specification, Text Format, Lexical Format; appendix, Custom Sections and Annotations).

One regular expression recognises every token; this module only adds what is not regular: nested comments,
annotations, and the matching of parentheses, which lets the parser skip a field without looking into it.

A token is its text. Its kind shows in the first character: a parenthesis, `"` a string (with its quotes, escapes
not yet replaced), `$` an identifier (quoted identifiers are already reduced to their name), anything else a keyword,
a number, or a word the parser will refuse. The empty string stands behind the last token.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from .errors import TextError

_ID_CHARACTER = r"[0-9A-Za-z!#$%&'*+\-./:<=>?@\\^_`|~]"
_STRING_BODY = (
    r'(?:[^"\\\x00-\x1f\x7f]++'
    r"|\\(?:[tnr'\"\\]|[0-9a-fA-F]{2}|u\{[0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+\}))*+"
)
_STRING = f'"{_STRING_BODY}"'
# Two tokens need white space or a parenthesis between them; what runs on instead is one reserved token.
_TOKEN_END = rf'(?!{_ID_CHARACTER}|[",\[\]{{}}]|;(?!;))'

_TOKEN = re.compile(
    rf"""
    (?: [ \t\n\r]++ | ;;[^\n\r]*+ )*+
    (?: (\( (?![;@]))
      | (\))
      | ({_ID_CHARACTER}++ {_TOKEN_END})
      | ({_STRING} {_TOKEN_END})
      | (\$ {_STRING} {_TOKEN_END})
      | (\(;)
      | (\(@)
      | (\Z)
      | ((?: {_ID_CHARACTER}++ | {_STRING} | [,\[\]{{}}] | ;(?!;) )++)
    )
    """,
    re.VERBOSE,
)
_OPEN, _CLOSE, _WORD, _QUOTED, _QUOTED_ID, _COMMENT, _ANNOTATION, _END, _RESERVED = range(1, 10)

_COMMENT_EDGE = re.compile(r"\(;|;\)")
_ANNOTATION_ID = re.compile(rf"({_ID_CHARACTER}++)|({_STRING})")
_STRING_START = re.compile(_STRING_BODY)
_GAP = re.compile(r"(?:[ \t\n\r]++|;;[^\n\r]*+)*+")
_LINE_END = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(rb"\\(?:([tnr\"'\\])|([0-9a-fA-F]{2})|u\{([0-9a-fA-F_]+)\})")
_NAMED_ESCAPES = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b'"': b'"', b"'": b"'", b"\\": b"\\"}


@dataclass(frozen=True)
class Annotation:
    """An annotation `(@id ...)`: its identifier, where it begins, and the tokens behind the identifier."""

    name: str
    start: int
    body: Tokens


@dataclass
class Tokens:
    """A source text cut into tokens."""

    source: str
    texts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    closing: dict[int, int] = field(default_factory=dict)
    """Where the parenthesis opened by a token is closed, by index of the token."""
    annotations: dict[int, list[Annotation]] = field(default_factory=dict)
    """The annotations that stand right before a token, by index of the token."""

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.source))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The line and column, counted from one, of a character offset into the source."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def error(self, message: str, offset: int) -> TextError:
        """An error at a character offset."""
        return TextError(message, *self.line_and_column(offset))


def tokenize(source: str | bytes) -> Tokens:
    """Cut a source text into tokens; comments vanish and annotations are set aside."""
    tokens = Tokens(_decode(source))
    source = tokens.source
    texts, starts, closing = tokens.texts, tokens.starts, tokens.closing
    open_parentheses: list[int] = []
    match_token = _TOKEN.match
    position = 0
    while True:
        match = match_token(source, position)
        if match is None:
            raise _unexpected_character(tokens, position)
        kind = match.lastindex
        assert kind is not None, "every way through the pattern ends in a group"
        text = match[kind]
        start = match.start(kind)
        position = match.end()
        if kind == _OPEN:
            open_parentheses.append(len(texts))
        elif kind == _CLOSE:
            if not open_parentheses:
                raise tokens.error("unexpected token `)`: no parenthesis is open here", start)
            closing[open_parentheses.pop()] = len(texts)
        elif kind == _QUOTED_ID:
            text = "$" + _decode_identifier(tokens, text[1:], start)
        elif kind == _COMMENT:
            position = _skip_comment(tokens, start)
            continue
        elif kind == _ANNOTATION:
            annotation, position = _read_annotation(tokens, start)
            tokens.annotations.setdefault(len(texts), []).append(annotation)
            continue
        elif kind == _RESERVED:
            raise tokens.error(f"unknown operator or unexpected token `{text}`", start)
        texts.append(text)
        starts.append(start)
        if kind == _END:
            break
    if open_parentheses:
        raise tokens.error(
            "unclosed parenthesis: expected `)` before the end of the text", starts[open_parentheses[-1]]
        )
    return tokens


def _decode(source: str | bytes) -> str:
    """Sources are UTF-8; a str with lone surrogates has no such encoding and is as malformed (Characters)."""
    try:
        if isinstance(source, str):
            source.encode()
            return source
        return source.decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        raise Tokens(before).error("malformed UTF-8 encoding", len(before)) from None
    except UnicodeEncodeError as error:
        raise Tokens(error.object).error("malformed UTF-8 encoding: lone surrogate", error.start) from None


def _unexpected_character(tokens: Tokens, position: int) -> TextError:
    gap = _GAP.match(tokens.source, position)
    assert gap is not None, "the pattern matches the empty string"
    position = gap.end()
    if tokens.source[position] == '"':
        return _bad_string(tokens, position)
    return tokens.error(f"illegal character {tokens.source[position]!r}", position)


def _bad_string(tokens: Tokens, start: int) -> TextError:
    """Find out why the text from a quotation mark on is not a string."""
    source = tokens.source
    position = start + 1
    match = _STRING_START.match(source, position)
    assert match is not None, "the inside of a string may be empty"
    position = match.end()
    if position == len(source) or source[position] in "\n\r":
        return tokens.error('unclosed string: expected `"`', start)
    if source[position] == "\\":
        return tokens.error("malformed escape in string", position)
    return tokens.error(f"illegal character {source[position]!r} in string", position)


def _skip_comment(tokens: Tokens, start: int) -> int:
    """The position behind a block comment; such comments nest (Comments)."""
    depth = 0
    position = start
    while edge := _COMMENT_EDGE.search(tokens.source, position):
        position = edge.end()
        depth += 1 if edge[0] == "(;" else -1
        if depth == 0:
            return position
    raise tokens.error("unclosed comment: expected `;)`", start)


def _read_annotation(tokens: Tokens, start: int) -> tuple[Annotation, int]:
    """An annotation and the position behind it; inside, any token goes as long as parentheses balance."""
    source = tokens.source
    match = _ANNOTATION_ID.match(source, start + 2)
    if match is None:
        raise tokens.error("empty annotation id: expected an identifier behind `(@`", start)
    name = match[1] or _decode_identifier(tokens, match[2], start, "annotation id")
    position = match.end()
    body = Tokens(source)
    open_parentheses: list[int] = []
    while True:
        match = _TOKEN.match(source, position)
        if match is None:
            raise _unexpected_character(tokens, position)
        kind = match.lastindex
        assert kind is not None, "every way through the pattern ends in a group"
        position = match.end()
        if kind == _END:
            raise tokens.error(f"unclosed annotation `(@{name}`: expected `)`", start)
        if kind == _COMMENT:
            position = _skip_comment(tokens, match.start(kind))
            continue
        text = match[kind]
        if kind == _ANNOTATION:
            # Nested annotations need not be well-formed: this is a parenthesis, and a word that begins with `@`.
            kind, text = _OPEN, "("
            position -= 1
        if kind == _OPEN:
            open_parentheses.append(len(body.texts))
        elif kind == _CLOSE and open_parentheses:
            body.closing[open_parentheses.pop()] = len(body.texts)
        elif kind == _CLOSE:
            text = ""
        body.texts.append(text)
        body.starts.append(match.start(match.lastindex or 0))
        if not text:
            return Annotation(name, start, body), position


def _decode_identifier(tokens: Tokens, quoted: str, start: int, what: str = "identifier") -> str:
    """The name in a quoted identifier `$"..."`, which must be UTF-8 and not empty (Identifiers)."""
    name = decode_string(quoted)
    if name is None:
        raise tokens.error("malformed escape in string: not a Unicode scalar value", start)
    if not name:
        raise tokens.error(f"empty {what}", start)
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise tokens.error(f"malformed UTF-8 encoding in {what}", start) from None


def decode_string(quoted: str) -> bytes | None:
    """The bytes of a string token, or None when an escape names no Unicode scalar value (Strings)."""
    encoded = quoted[1:-1].encode()
    if b"\\" not in encoded:
        return encoded
    parts: list[bytes] = []
    position = 0
    for match in _ESCAPE.finditer(encoded):
        parts.append(encoded[position : match.start()])
        position = match.end()
        named, hexadecimal, scalar = match.groups()
        if named is not None:
            parts.append(_NAMED_ESCAPES[named])
        elif hexadecimal is not None:
            parts.append(bytes([int(hexadecimal, 16)]))
        else:
            value = int(scalar, 16)
            if value > 0x10FFFF or 0xD800 <= value < 0xE000:
                return None
            parts.append(chr(value).encode())
    parts.append(encoded[position:])
    return b"".join(parts)

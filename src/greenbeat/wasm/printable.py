"""Text that a module's author chose, made safe to show; a file of its own, since it is all that some need of `wasm`."""

# Invisible, or able to change how the text around them is shown: controls, formats (bidirectional marks among them),
# surrogates, private use, unassigned, line and paragraph separators.
UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(name: str, limit: int | None = None) -> str:
    """A name from a module, safe to show: escaped as the text format does, and cut after `limit` characters."""
    cut = limit is not None and len(name) > limit
    text = "".join(map(_printable, name[:limit]))
    return f"{text}…" if cut else text


def _printable(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character == " " or (character.isascii() and character.isprintable()):
        return character
    import unicodedata  # here, since hardly any name needs it

    category = unicodedata.category(character)
    return f"\\u{{{ord(character):x}}}" if category in UNPRINTABLE or category == "Zs" else character

"""Number literals of the text format, exactly.

An integer literal becomes a Python integer; a floating-point literal becomes the bits of the IEEE 754 value nearest
to it (ties to even). Floats never pass through a Python float: the literal is read as a fraction of two integers
and rounded once, so f32 literals suffer no double rounding and NaN payloads survive.

Functions here know nothing of lines and columns: they raise a plain `ValueError` which the parser locates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import short

_DIGITS = "[0-9]+(?:_[0-9]+)*"
_HEX_DIGITS = "[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*"
_INTEGER = re.compile(f"([+-]?)(?:0x({_HEX_DIGITS})|({_DIGITS}))")
_DECIMAL_FLOAT = re.compile(rf"({_DIGITS})(?:\.({_DIGITS})?)?(?:[eE]([+-]?{_DIGITS}))?")
_HEX_FLOAT = re.compile(rf"0x({_HEX_DIGITS})(?:\.({_HEX_DIGITS})?)?(?:[pP]([+-]?{_DIGITS}))?")

# No halfway point between two doubles has more significant decimal digits than 767, so what stands behind
# the first 800 only says "and a little more". This also keeps int() below its limit on the length of a string.
_SIGNIFICANT_DIGITS = 800

# Exponents beyond these lead to infinity or zero in every format, whatever digits stand before them.
_LARGEST_EXPONENT = 10**12


@dataclass(frozen=True)
class FloatFormat:
    """An IEEE 754 binary interchange format."""

    name: str
    exponent_bits: int
    mantissa_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def sign_bit(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def canonical_payload(self) -> int:
        """The payload of the canonical NaN: only the most significant bit is set."""
        return 1 << (self.mantissa_bits - 1)

    @property
    def size(self) -> int:
        """The size of a value in bytes."""
        return (1 + self.exponent_bits + self.mantissa_bits) // 8


F32 = FloatFormat("f32", 8, 23)
F64 = FloatFormat("f64", 11, 52)


def parse_integer(text: str) -> int | None:
    """The value of an integer literal with an optional sign, or None when `text` is not one (Integers)."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, hexadecimal, decimal = match.groups()
    if hexadecimal is not None:
        value = int(hexadecimal, 16)
    else:
        digits = decimal.replace("_", "").lstrip("0")
        # Longer numbers fit no type: any value out of every range will do in their place.
        value = int(digits or "0") if len(digits) <= 100 else 10**100
    return -value if sign == "-" else value


def parse_unsigned(text: str, bits: int) -> int:
    """The value of an unsigned literal uN; no sign is allowed (Integers)."""
    value = parse_integer(text)
    if value is None or text[0] in "+-":
        raise ValueError(f"expected an unsigned integer, found `{short(text)}`")
    if value >> bits:
        raise ValueError(f"u{bits} constant out of range: {short(text)}")
    return value


def parse_signless(text: str, bits: int) -> int:
    """The value of a literal iN, signed or unsigned, reduced to its bits as an unsigned integer (Integers)."""
    value = parse_integer(text)
    if value is None:
        raise ValueError(f"expected an i{bits} literal, found `{short(text)}`")
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise ValueError(f"i{bits} constant out of range: {short(text)}")
    return value & ((1 << bits) - 1)


def parse_float(text: str, form: FloatFormat) -> int:
    """The bits of a floating-point literal fN (Floating-Point)."""
    sign = form.sign_bit if text[:1] == "-" else 0
    magnitude = text[1:] if text[:1] in ("+", "-") else text
    if magnitude == "inf":
        return sign | form.infinity
    if magnitude == "nan":
        return sign | form.infinity | form.canonical_payload
    if magnitude.startswith("nan:0x"):
        return sign | form.infinity | _parse_payload(magnitude[4:], form)
    match = _HEX_FLOAT.fullmatch(magnitude)
    if match is not None:
        bits = _round_hexadecimal(match, form)
    else:
        match = _DECIMAL_FLOAT.fullmatch(magnitude)
        if match is None:
            raise ValueError(f"expected an {form.name} literal, found `{short(text)}`")
        bits = _round_decimal(match, form)
    if bits >= form.infinity:
        raise ValueError(f"{form.name} constant out of range: {short(text)}")
    return sign | bits


def _parse_payload(text: str, form: FloatFormat) -> int:
    payload = parse_integer(text)
    if payload is None:
        raise ValueError(f"expected a hexadecimal NaN payload, found `{short(text)}`")
    if not 0 < payload < 1 << form.mantissa_bits:
        raise ValueError(f"{form.name} constant out of range: NaN payload {short(text)}")
    return payload


def _parse_exponent(text: str) -> int:
    digits = text.lstrip("+-").lstrip("0")
    value = int(digits or "0") if len(digits) <= 12 else _LARGEST_EXPONENT
    return -value if text.startswith("-") else value


def _round_decimal(match: re.Match[str], form: FloatFormat) -> int:
    whole, fraction, exponent_text = (part.replace("_", "") for part in match.groups(""))
    digits = (whole + fraction).lstrip("0")
    exponent = _parse_exponent(exponent_text) - len(fraction)
    magnitude = len(digits) + exponent  # the value is below 10 ** magnitude
    if not digits or magnitude < -400:
        return 0
    if magnitude > 400:
        return form.infinity
    if len(digits) > _SIGNIFICANT_DIGITS:
        dropped = digits[_SIGNIFICANT_DIGITS:]
        exponent += len(dropped) - 1
        digits = digits[:_SIGNIFICANT_DIGITS] + ("1" if dropped.strip("0") else "0")
    significand = int(digits)
    if exponent >= 0:
        return round_fraction(significand * 10**exponent, 1, form)
    return round_fraction(significand, 10**-exponent, form)


def _round_hexadecimal(match: re.Match[str], form: FloatFormat) -> int:
    whole, fraction, exponent_text = (part.replace("_", "") for part in match.groups(""))
    significand = int(whole + fraction, 16)
    exponent = _parse_exponent(exponent_text) - 4 * len(fraction)
    magnitude = significand.bit_length() + exponent  # the value is below 2 ** magnitude
    if significand == 0 or magnitude < -1200:
        return 0
    if magnitude > 1200:
        return form.infinity
    if exponent >= 0:
        return round_fraction(significand << exponent, 1, form)
    return round_fraction(significand, 1 << -exponent, form)


def round_fraction(numerator: int, denominator: int, form: FloatFormat) -> int:
    """The bits of the value of `form` nearest to a positive fraction, ties to even (Numerics, Rounding)."""
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator << max(0, -exponent) < denominator << max(0, exponent):
        exponent -= 1
    # Now 2**exponent <= value < 2**(exponent + 1); all subnormal values share the smallest exponent.
    exponent = max(exponent, 1 - form.bias)
    shift = form.mantissa_bits - exponent
    if shift >= 0:
        numerator <<= shift
    else:
        denominator <<= -shift
    significand, remainder = divmod(numerator, denominator)
    if 2 * remainder > denominator or (2 * remainder == denominator and significand & 1):
        significand += 1
    # The implicit leading bit of a normal significand, and a carry out of rounding, both add one to the exponent
    # field, which is what they mean: the encodings of consecutive values are consecutive integers.
    return min(significand + ((exponent + form.bias - 1) << form.mantissa_bits), form.infinity)

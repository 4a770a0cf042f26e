"""The registry of function types: one number a type, whichever module it comes from."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import pytest

from greenbeat.native import ctypes_of
from greenbeat.runtime.layout import SignatureType
from greenbeat.wasm.functypes import SELF, intern_signature
from greenbeat.wasm.text import assemble
from greenbeat.wasm.valuetypes import F64, FUNCREF, I32, I64, REFERENCE
from tests.wasm.modules import Decoder


@pytest.fixture(params=[False, True], ids=["fast", "checked"])
def decoder(request: pytest.FixtureRequest) -> Decoder:
    return Decoder(request.param)


def intern(decoder: Decoder, params: tuple[int, ...], results: tuple[int, ...]) -> Any:
    words = (*params, *results, 0)
    array = (ctypes.c_uint32 * len(words))(*words)
    address = decoder.library.function(intern_signature)(ctypes.addressof(array), len(params), len(results))
    return ctypes_of(SignatureType).from_address(address)


def words_of(signature: Any) -> list[int]:
    count = signature.param_count + signature.result_count
    return list((ctypes.c_uint32 * count).from_address(signature.params))


def test_equal_types_are_one(decoder: Decoder) -> None:
    first = intern(decoder, (I32, I64), (F64,))
    again = intern(decoder, (I32, I64), (F64,))
    assert ctypes.addressof(first) == ctypes.addressof(again)
    assert words_of(first) == [I32, I64, F64]
    assert intern(decoder, (I32,), (I64, F64)).number != first.number
    assert intern(decoder, (), ()).number != first.number


def test_thousands_of_types(decoder: Decoder) -> None:
    """Numbers and addresses stay when the table grows."""
    kinds = list(itertools.product((I32, I64, F64, FUNCREF), repeat=6))
    before = {kind: intern(decoder, kind, ()) for kind in kinds}
    assert len({signature.number for signature in before.values()}) == len(kinds) == 4096
    for kind, signature in before.items():
        assert ctypes.addressof(intern(decoder, kind, ())) == ctypes.addressof(signature)
        assert words_of(signature) == list(kind)


def test_types_that_refer_to_themselves(decoder: Decoder) -> None:
    itself = intern(decoder, (REFERENCE | SELF,), ())
    assert words_of(itself) == [REFERENCE | itself.number]
    assert intern(decoder, (REFERENCE | SELF,), ()).number == itself.number
    # A type that takes a reference to that type is another one: the equality of recursive types is iso-recursive.
    other = intern(decoder, (REFERENCE | itself.number,), ())
    assert other.number != itself.number
    assert words_of(other) == words_of(itself)
    assert intern(decoder, (REFERENCE | itself.number,), ()).number == other.number


def test_types_of_different_modules(decoder: Decoder) -> None:
    one = assemble("(type (func)) (type $t (func (param (ref $t)))) (type (func (result (ref null $t))))")
    other = assemble("(type $t (func (param (ref $t)))) (type (func (result (ref null $t)))) (type (func))")
    with decoder.decoded(one) as a, decoder.decoded(other) as b:
        assert a.types[0] == b.types[2]
        assert a.types[1] == b.types[0]
        assert a.types[2] == b.types[1]
        assert len(set(a.types)) == 3

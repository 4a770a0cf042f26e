"""The kernels of `psort`: a stable merge sort whose halves, and whose merges, are forks.

a        │ sorted │ sorted │ ── merge ─▶ a part of `scratch`, one level further down the other way round
merge    the middle of the longer part, its place in the other one: two merges that do not touch each other
"""

from functools import cache

from greenbeat.forkjoin.words import par
from greenbeat.kernels.objects import Kernel, kernel
from greenbeat.kernels.types import Array
from greenbeat.native.types import FloatType, Type

# Runs of so many elements are sorted by insertion, and so many are merged at once.
RUN = 24
MERGED = 512


@cache
def sorter(element: Type) -> "Kernel[None]":
    """The kernel that sorts an array of such elements with another one as scratch."""
    items = Array[element]

    if isinstance(element, FloatType):

        @kernel
        def less(x: element, y: element) -> bool:
            return x < y or (y != y and x == x)

        @kernel
        def zipped(
            source: items, first: int, middle: int, second: int, end: int, target: items, at: int
        ) -> tuple[int, int]:
            """Merge two parts until one of them ends; where both are then."""
            while first < middle and second < end:
                if less(source[second], source[first]):
                    target[at] = source[second]
                    second += 1
                else:
                    target[at] = source[first]
                    first += 1
                at += 1
            return first, second

    else:

        @kernel
        def less(x: element, y: element) -> bool:
            return x < y

        @kernel
        def zipped(
            source: items, first: int, middle: int, second: int, end: int, target: items, at: int
        ) -> tuple[int, int]:
            """As above, without a branch that nobody could predict: for floats, that takes longer."""
            while first < middle and second < end:
                x, y = source[first], source[second]
                later = y < x
                target[at] = y if later else x
                second += later
                first += not later
                at += 1
            return first, second

    @kernel
    def bound(a: items, first: int, end: int, x: element, after: bool) -> int:
        """Where `x` belongs in a sorted part: before its equals, or after them."""
        while first < end:
            middle = (first + end) // 2
            if less(a[middle], x) or (after and not less(x, a[middle])):
                first = middle + 1
            else:
                end = middle
        return first

    @kernel
    def merge(source: items, first: int, middle: int, second: int, end: int, target: items, at: int) -> None:
        """Merge two sorted parts of `source` into `target` from `at` on; of equals, those of the first come first."""
        if middle - first + end - second > MERGED:
            if middle - first >= end - second:
                cut = (first + middle) // 2
                other = bound(source, second, end, source[cut], False)
            else:
                other = (second + end) // 2
                cut = bound(source, first, middle, source[other], True)
            further = at + cut - first + other - second
            par(
                merge(source, first, cut, second, other, target, at),
                merge(source, cut, middle, other, end, target, further),
            )
            return
        one, other = zipped(source, first, middle, second, end, target, at)
        at += one - first + other - second
        for i in range(middle - one):
            target[at + i] = source[one + i]
        for i in range(end - other):
            target[at + i] = source[other + i]

    @kernel
    def sort(a: items, scratch: items, first: int, end: int, elsewhere: bool) -> None:
        """Sort a part of `a` in place, or into `scratch`."""
        if end - first <= RUN:
            for i in range(first + 1, end):
                x = a[i]
                k = i
                while k > first and less(x, a[k - 1]):
                    a[k] = a[k - 1]
                    k -= 1
                a[k] = x
            if elsewhere:
                for i in range(first, end):
                    scratch[i] = a[i]
            return
        middle = (first + end) // 2
        par(sort(a, scratch, first, middle, not elsewhere), sort(a, scratch, middle, end, not elsewhere))
        if elsewhere:
            merge(a, first, middle, middle, end, scratch, first)
        else:
            merge(scratch, first, middle, middle, end, a, first)

    @kernel
    def psort(a: items, scratch: items) -> None:
        if len(scratch) < len(a):
            raise ValueError("the scratch is shorter than the array")
        sort(a, scratch, 0, len(a), False)

    return psort

"""What native functions answer to Python when they did not do what was asked, where an exception would not do.

Python imports this file, and none of those whose functions answer: at run time they are objects, not modules.
"""

from greenbeat.native import struct, u32

# InstanceError.kind
NO_ERROR, NO_MEMORY, MEMORY_LIMIT, TABLE_LIMIT, SEGMENT_TRAP = range(5)

# What `answer_guest` gives: nobody waits for the answer any more; the guest goes on; it does not quite wait yet.
NOBODY, ANSWERED, LATER = range(3)

# What `grow_table_by` gives when the element does not fit the table.
MISFIT = (1 << 64) - 2


@struct
class InstanceError:
    """Why instantiation stopped. `index` is the memory's, the table's or the segment's, `trap` what a segment did."""

    kind: u32
    trap: u32
    index: u32
    is_data: bool

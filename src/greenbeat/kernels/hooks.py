"""The numbers of the Python functions that native code of kernels calls when something needs words.

`objects.py` writes and registers them. They are in a file of their own, since that must not import native code. What
they tell a user they return instead of raising it, or its traceback would begin with frames of theirs.
"""

(
    COMPILE,  # kernel: it is called for the first time; sets its code: None, or the exception to raise
    ARGUMENT,  # kernel, position, value, cause: the exception to raise
    BIND,  # kernel, arguments, names of the last ones: a tuple of all arguments, or the exception to raise
    FAILURE,  # status of the fiber, site's address, two words: the exception that it means, with its traceback
    CHANNEL,  # value, address of a layout: the address of the channel that the value is, or raises
) = range(5)
HOOKS = 5

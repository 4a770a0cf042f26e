"""The Python objects that a user holds: modules, instances, functions, memories, tables, globals.

`bridge` is the border to native code; every other file is one of those nouns.
"""

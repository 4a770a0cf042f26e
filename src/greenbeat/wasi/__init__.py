"""WASI preview 1: what programs for the command line need of a system, and nothing that they were not given.

    config.py       Wasi, what a guest gets             running.py   run, a command from bytes to exit status
    process.py      the guest as a process              functions.py the register of WASI's functions
    descriptors.py  paths.py  polling.py  clocks.py  randomness.py  sockets.py  unstable.py    the functions
    handles.py      open files of all kinds: hostfiles.py  memoryfiles.py  streams.py  directories.py
    walk.py         from a path to a folder and a name; folders.py what can be done there
    waiting.py      sleeping, with a deadline           quota.py     how much is allowed

The specification: https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
"""

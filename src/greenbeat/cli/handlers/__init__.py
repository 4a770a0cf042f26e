"""`greenbeat bench handlers`: what a dispatch costs on each target, weighted by how often each handler runs.

    profile.py   in a child with the counting engine: how often each handler ran in some real program
    compile.py   in a child per target: the handlers' assembly for that target, and what each handler costs
    report.py    both together, beside the figures of tinywasm's best series of changes

Children, because the counting engine is another build than ours, because a process compiles handlers for one target
only, and because LLVM ends the process when it meets what it cannot compile.
"""

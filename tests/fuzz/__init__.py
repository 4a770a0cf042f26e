"""Fuzzing: random modules run by Greenbeat in all of its ways and by wasmtime, and broken ones by Greenbeat alone.

    python -m tests.fuzz --modules 20000 --seed 1              differential: wasm-smith's modules and our own
    python -m tests.fuzz --kind mutants --modules 100000       broken modules: accepted or refused, never the end
    python -m tests.fuzz --replay hazards:1:4711               one case again
    python -m tests.fuzz --shrink findings/smith-1-17.wasm     a smaller module with the same finding

A case is a kind, a seed and a number; the same three always make the same module. Cases run in a child process with
limits on memory and time: one that ends the child, or stops making progress, is a finding, and the next child goes on
behind it.

    campaign ──▶ worker (a child) ──▶ cases: smith, hazards, mutants
                    │                    └──▶ differential: theirs.py and ours.py in step, over one world.py
                    └──▶ findings on its output, one JSON object a line
"""

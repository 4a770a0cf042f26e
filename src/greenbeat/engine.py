"""The engine of Greenbeat: the modules it is written in, and the objects they are compiled to.

Whoever adds a module of native code that no other module of the list imports appends it to `MODULES`. Such modules, and
the packages they are in, must not use `engine.function` when they are imported.

    from greenbeat.engine import engine
    decode = engine.function("decode_module")
"""

from pathlib import Path

from greenbeat.native.engine import Engine, UnitPlan

PACKAGE = Path(__file__).parent

MODULES = [
    "greenbeat.runtime.layout",
    "greenbeat.wasm.reader",
    "greenbeat.wasm.decoder",
    "greenbeat.runtime.instantiate",
    "greenbeat.interpreter.translator",
    "greenbeat.interpreter.enter",
    "greenbeat.interpreter.faulting",
    "greenbeat.runtime.callable",
    "greenbeat.runtime.wordcalls",
    "greenbeat.runtime.resumable",
    "greenbeat.runtime.frames",
    "greenbeat.tasks.threads",
    "greenbeat.tasks.guest_samples",
    "greenbeat.tasks.bridges",
    "greenbeat.tasks.selecting",
    "greenbeat.forkjoin.promotion",
    "greenbeat.kernels.calling",
    "greenbeat.kernels.spawning",
    "greenbeat.tasks.guests",
]

# The handlers are most of the code: they are compiled beside the rest. Cutting them into two objects was tried: the
# build took two thirds of the time, but thousands of symbols between the objects tripled the time of every start.
UNITS = [
    UnitPlan(
        "handlers", ("greenbeat.interpreter.handlers", "greenbeat.interpreter.calls", "greenbeat.interpreter.enter")
    ),
    UnitPlan("core"),
]

engine = Engine(MODULES, UNITS, packages={"greenbeat": PACKAGE}, shipped=PACKAGE / "_objects", images=True)

"""An HTTP server whose pages are rendered by guests, under load: latency and throughput.

    python -m benchmarks.server
    python -m benchmarks.server --requests 5000 --connections 32 --rows 200

The server is asyncio's, with raw streams, in a process of its own; a second process sends requests over connections
that stay open. Every request takes an instance from a pool, lets it render a page into its memory, and reads the page
from there. The guest is called in the loop's own thread, or beside it: as a task of Greenbeat's (`.aio`), or in a
thread of an executor. The ratios are to the first line.
"""

import argparse
import asyncio
import importlib
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from benchmarks import report
from benchmarks.isolation import Worker, WorkerError

# render(number, rows): a table of that many rows, from address 0 on; its length.
PAGE = """(module
  (memory (export "memory") 4)
  (data (i32.const 200000) "<html><body><table>")
  (data (i32.const 200100) "<tr><td>row </td><td>")
  (data (i32.const 200200) "</td></tr>\\n")
  (data (i32.const 200300) "</table></body></html>")
  (func $text (param $at i32) (param $from i32) (param $size i32) (result i32)
    (memory.copy (local.get $at) (local.get $from) (local.get $size))
    (i32.add (local.get $at) (local.get $size)))
  (func $digits (param $at i32) (param $number i32) (result i32) (local $left i32) (local $end i32)
    (local.set $left (local.get $number))
    (loop $count
      (local.set $end (i32.add (local.get $end) (i32.const 1)))
      (br_if $count (local.tee $left (i32.div_u (local.get $left) (i32.const 10)))))
    (local.set $left (i32.add (local.get $at) (local.get $end)))
    (local.set $end (local.get $left))
    (loop $put
      (i32.store8 (local.tee $left (i32.sub (local.get $left) (i32.const 1)))
        (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
      (local.set $number (i32.div_u (local.get $number) (i32.const 10)))
      (br_if $put (i32.gt_u (local.get $left) (local.get $at))))
    (local.get $end))
  (func (export "render") (param $number i32) (param $rows i32) (result i32) (local $at i32) (local $row i32)
    (local.set $at (call $text (i32.const 0) (i32.const 200000) (i32.const 19)))
    (loop $next
      (local.set $at (call $text (local.get $at) (i32.const 200100) (i32.const 21)))
      (local.set $at (call $digits (local.get $at) (i32.add (local.get $number) (local.get $row))))
      (local.set $at (call $text (local.get $at) (i32.const 200200) (i32.const 11)))
      (br_if $next (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 1))) (local.get $rows))))
    (call $text (local.get $at) (i32.const 200300) (i32.const 22))))"""


def expected(number: int, rows: int) -> bytes:
    """The page, as Python renders it."""
    lines = "".join(f"<tr><td>row </td><td>{number + row}</td></tr>\n" for row in range(rows))
    return f"<html><body><table>{lines}</table></body></html>".encode()


class Renderer(ABC):
    """An engine with a pool of instances."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.pool: list[Any] = []

    @abstractmethod
    def instantiate(self) -> Any:
        """A new instance."""

    @abstractmethod
    async def render(self, instance: Any, number: int) -> bytes:
        """A page."""

    async def page(self, number: int) -> bytes:
        """A page, by an instance from the pool."""
        instance = self.pool.pop() if self.pool else self.instantiate()
        try:
            return await self.render(instance, number)
        finally:
            self.pool.append(instance)


class Greenbeat(Renderer):
    """Greenbeat, in the loop's thread."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.module = importlib.import_module("greenbeat").Module.from_wat(PAGE)

    def instantiate(self) -> Any:
        return self.module.instantiate().exports

    async def render(self, instance: Any, number: int) -> bytes:
        page: bytes = instance.memory.read(0, instance.render(number, self.rows))
        return page


class GreenbeatTasks(Greenbeat):
    """Greenbeat, as tasks."""

    async def render(self, instance: Any, number: int) -> bytes:
        page: bytes = instance.memory.read(0, await instance.render.aio(number, self.rows))
        return page


class Wasmtime(Renderer):
    """wasmtime, in the loop's thread."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.wasmtime = importlib.import_module("wasmtime")
        self.engine = self.wasmtime.Engine()
        self.module = self.wasmtime.Module(self.engine, PAGE)

    def instantiate(self) -> Any:
        store = self.wasmtime.Store(self.engine)
        exports = self.wasmtime.Instance(store, self.module, []).exports(store)
        return store, exports["render"], exports["memory"]

    def called(self, instance: Any, number: int) -> bytes:
        """A page."""
        store, render, memory = instance
        return bytes(memory.read(store, 0, render(store, number, self.rows)))

    async def render(self, instance: Any, number: int) -> bytes:
        return self.called(instance, number)


class WasmtimeThreads(Wasmtime):
    """wasmtime, in threads of an executor."""

    async def render(self, instance: Any, number: int) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(None, self.called, instance, number)


class Server:
    """What the load generator talks to."""

    WAYS: ClassVar[dict[str, Callable[[int], Renderer]]] = {
        "greenbeat": Greenbeat,
        "greenbeat .aio": GreenbeatTasks,
        "wasmtime": Wasmtime,
        "wasmtime in threads": WasmtimeThreads,
    }

    def __init__(self, way: str, rows: int) -> None:
        self.renderer = self.WAYS[way](rows)

    def load(self, requests: int, connections: int) -> dict[str, float]:
        """Serve so many requests, and what the load generator found."""
        return asyncio.run(self._load(requests, connections))

    async def _load(self, requests: int, connections: int) -> dict[str, float]:
        if await self.renderer.page(7) != expected(7, self.renderer.rows):
            raise ArithmeticError("the page is wrong")
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            command = (sys.executable, "-m", "benchmarks.server", "--load", str(port))
            numbers = ("--requests", str(requests), "--connections", str(connections))
            client = await asyncio.create_subprocess_exec(*command, *numbers, stdout=asyncio.subprocess.PIPE)
            output, _ = await asyncio.wait_for(client.communicate(), 100)
        found: dict[str, float] = json.loads(output)
        return found

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while request := await reader.readline():
                while await reader.readline() not in (b"\r\n", b""):
                    pass
                number = int(request.split()[1].rpartition(b"/")[2])
                body = await self.renderer.page(number)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


async def generate_load(port: int, requests: int, connections: int) -> dict[str, float]:
    """Send requests one after the other over each connection; throughput, and percentiles of latency."""
    times: list[float] = []
    each = requests // connections

    async def connection(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(first, first + each):
            start = time.perf_counter()
            writer.write(b"GET /page/%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split()[0]))
            times.append(time.perf_counter() - start)
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(connection(index * each) for index in range(connections)))
    seconds = time.perf_counter() - start
    times.sort()
    return {"throughput": len(times) / seconds, "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}


def measure(requests: int, connections: int, rows: int) -> str:
    """The table: each way in a process of its own, the better of two runs."""
    headings = ("", "requests/s", "p50 ms", "p99 ms")
    lines: list[tuple[str, ...]] = []
    base: dict[str, float] = {}
    for way in Server.WAYS:
        try:
            with Worker(partial(Server, way, rows)) as worker:
                runs = [worker.call("load", requests, connections) for _ in range(2)]
        except WorkerError as error:
            lines.append((way, "failed", str(error).splitlines()[-1][:40], ""))
            continue
        found = max(runs, key=lambda run: run["throughput"])
        base = base or found
        lines.append(
            (
                way,
                f"{found['throughput']:.0f} ({found['throughput'] / base['throughput']:.2f})",
                f"{found['p50'] * 1e3:.2f} ({found['p50'] / base['p50']:.2f})",
                f"{found['p99'] * 1e3:.2f} ({found['p99'] / base['p99']:.2f})",
            )
        )
    return report.table(headings, lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4000, help="requests of one run (default 4000)")
    parser.add_argument("--connections", type=int, default=16, help="connections at once (default 16)")
    parser.add_argument("--rows", type=int, default=100, help="rows of a page (default 100)")
    parser.add_argument("--load", type=int, metavar="PORT", help="only send requests, and print what was found")
    options = parser.parse_args()
    if options.load is not None:
        print(json.dumps(asyncio.run(generate_load(options.load, options.requests, options.connections))))
        return
    print(report.machine())
    print(f"{options.requests} requests, {options.connections} connections, pages of {options.rows} rows")
    print(measure(options.requests, options.connections, options.rows))


if __name__ == "__main__":
    main()

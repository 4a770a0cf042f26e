;; calls: what crosses between Python and a module, for `benchmarks/calls.py`: an export, an import, a memory of 2 MiB.
(module
  (import "env" "twice" (func $twice (param i32) (result i32)))
  (memory (export "memory") 32)
  (func (export "add") (param i32 i32) (result i32)
    (i32.add (local.get 0) (local.get 1)))
  ;; Calls the import n times, each time with what it returned before.
  (func (export "call_back") (param $n i32) (result i32)
    (local $value i32)
    (local.set $value (i32.const 1))
    (loop $again
      (local.set $value (call $twice (local.get $value)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $value)))

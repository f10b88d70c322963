"""One instance of the core: its exports, its memory, its exchange buffer."""

import ctypes
import struct
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from wasmtime import (
    Config,
    Engine,
    FuncType,
    MemoryType,
    Module,
    Store,
    ValType,
    WasmtimeError,
)

from ._errors import CoreValueError, refusal
from ._wasmtime import Extern, library, take_message
from .abi import ABI_VERSION, SIGNATURES, Exports, Status

_PAGE_BYTES = 65_536
_FIRST_EXCHANGE_BYTES = 4_096

# A value of a call: 16 bytes, of which an i32 takes the first 4 (wasmtime_val_raw_t).
_VALUE_BYTES = 16
_RESULT = struct.Struct("<i")

# Address and length of the exchange buffer in the header of the memory.
_EXCHANGE = struct.Struct("<II")
_EXCHANGE_AT = 16
_HEADER_BYTES = 64


def embedded() -> bytes:
    """The core that this package carries."""
    return resources.files(__package__).joinpath("berth-core.wasm").read_bytes()


@cache
def _engine() -> Engine:
    config = Config()
    config.memory_may_move = False  # so the address of a memory is asked for once
    return Engine(config)


@lru_cache(maxsize=4)
def compiled(wasm: bytes) -> Module:
    """The compiled module, whose exports have the types of the ABI."""
    try:
        module = Module(_engine(), wasm)
    except WasmtimeError as error:
        raise ValueError(f"Not a WebAssembly module: {error}") from error
    types = {export.name: export.type for export in module.exports}
    wrong = [name for name in SIGNATURES if not _is_of(types.get(name), name)]
    if not isinstance(types.get("memory"), MemoryType):
        wrong.append("memory")
    if wrong:
        raise ValueError(f"Not the core: {', '.join(wrong)} missing, or of other types")
    return module


def _is_of(export: Any, name: str) -> bool:
    if not isinstance(export, FuncType):
        return False
    i32 = ValType.i32()
    wanted = [i32] * len(SIGNATURES[name])
    return bool(export.params == wanted and export.results == [i32])


class Instance(Exports):
    """The raw layer: calls by number, bytes in memory. One thread's.

    Arguments are checked for their 32 bits, results are handed back as they are.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._store = Store(_engine())
        self._library = library()
        self._context = self._library.wasmtime_store_context(self._store.ptr())
        self._trap = ctypes.c_void_p()
        self._trap_at = ctypes.addressof(self._trap)
        most = max(1, *map(len, SIGNATURES.values()))
        self._values = ctypes.create_string_buffer(most * _VALUE_BYTES)
        self._values_at = ctypes.addressof(self._values)
        self._call_unchecked = self._library.wasmtime_func_call_unchecked
        self._externs = self._instantiate()
        self._functions = {
            name: (_packer(signature), self._externs[name].address, len(signature) or 1)
            for name, signature in SIGNATURES.items()
        }
        self._memory = self._externs["memory"].address
        self._base = self._library.wasmtime_memory_data(self._context, self._memory)
        self._header: memoryview | None = self._view(0, _HEADER_BYTES)
        self._place = (0, 0)
        self._exchange = memoryview(b"")

    @classmethod
    def fresh(cls) -> "Instance":
        """One of the embedded core in which nothing has been called."""
        return cls(compiled(embedded()))

    @classmethod
    def open(cls, wasm: bytes) -> "Instance":
        """A fresh instance; refuses what is no core of this ABI."""
        self = cls(compiled(wasm))
        major = self.abi_version() >> 16
        if major != ABI_VERSION[0]:
            got = f"major version {major}, wanted {ABI_VERSION[0]}"
            raise CoreValueError("abi_version", Status.BAD_ARGUMENT, got)
        self.check("exchange", self.exchange(_FIRST_EXCHANGE_BYTES))
        return self

    def copy(self) -> "Instance":
        """An equal instance: all state is in the memory."""
        other = Instance(self._module)
        missing = (self._memory_bytes() - other._memory_bytes()) // _PAGE_BYTES
        error = self._library.wasmtime_memory_grow(
            other._context, other._memory, missing, ctypes.byref(ctypes.c_uint64())
        )
        if error:
            raise MemoryError(take_message(error, None))
        other.write(0, self.read(0, self.state_bytes()))
        return other

    def close(self) -> None:
        """Frees the memory; every later call is a RuntimeError."""
        self._functions = {}
        self._header = None
        self._store.close()

    def call(self, name: str, *args: int) -> int:
        """Calls an export by its name: its result, or a Status below 0."""
        try:
            pack_into, function, slots = self._functions[name]
            pack_into(self._values, 0, *args)
        except (KeyError, struct.error) as wrong:
            raise self._misuse(name, args, wrong) from None
        error = self._call_unchecked(
            self._context, function, self._values_at, slots, self._trap_at
        )
        if error or self._trap:
            raise self._failure(name, error)
        result: int = _RESULT.unpack_from(self._values)[0]
        return result

    def check(self, operation: str, result: int, got: str = "") -> int:
        """The result of an operation that succeeded, else its refusal."""
        if result < 0:
            raise refusal(operation, result, got)
        return result

    def buffer(self) -> memoryview:
        """The exchange buffer as it is now: any call may move it.

        Not to be kept: it does not keep the memory alive.
        """
        if self._header is None:
            raise _closed()
        # The header says what exchange(0) and exchange_size() do, without the calls.
        place = _EXCHANGE.unpack_from(self._header, _EXCHANGE_AT)
        if place != self._place:
            self._exchange = self._view(*place)
            self._place = place
        return self._exchange

    def reserve(self, length: int) -> memoryview:
        """The exchange buffer, at least so many bytes long."""
        buffer = self.buffer()
        if length <= len(buffer):
            return buffer
        self.check("exchange", self.exchange(length), f"{length} bytes")
        return self.buffer()

    def read(self, address: int, length: int) -> bytes:
        """A copy of bytes of the memory."""
        return bytes(self._view(address, length))

    def write(self, address: int, content: bytes) -> None:
        """Overwrites bytes of the memory."""
        self._view(address, len(content))[:] = content

    def _view(self, address: int, length: int) -> memoryview:
        if not 0 <= address <= address + length <= self._memory_bytes():
            raise IndexError(f"No {length} bytes at {address} in the memory")
        array = (ctypes.c_uint8 * length).from_address(self._base + address)
        return memoryview(array).cast("B")

    def _memory_bytes(self) -> int:
        if not self._functions:
            raise _closed()
        size = self._library.wasmtime_memory_data_size(self._context, self._memory)
        return int(size)

    def _instantiate(self) -> dict[str, Extern]:
        """The exports; a start function may already have failed."""
        instance = ctypes.create_string_buffer(16)  # wasmtime_instance_t
        error = self._library.wasmtime_instance_new(
            self._context, self._module.ptr(), None, 0, instance, self._trap_at
        )
        if error or self._trap:
            raise self._failure("instantiation", error)
        externs = {name: Extern() for name in (*SIGNATURES, "memory")}
        for name, extern in externs.items():
            symbol = name.encode()
            self._library.wasmtime_instance_export_get(
                self._context, instance, symbol, len(symbol), ctypes.byref(extern)
            )
        return externs

    def _failure(self, name: str, error: int | None) -> Exception:
        trap, self._trap.value = self._trap.value, None
        return RuntimeError(f"{name} failed: {take_message(error, trap)}")

    def _misuse(self, name: str, args: tuple[int, ...], wrong: Exception) -> Exception:
        if not self._functions:
            return _closed()
        if isinstance(wrong, KeyError):
            return AttributeError(f"The core has no export {name}")
        return ValueError(f"{name}{args}: {wrong}")


def _closed() -> Exception:
    return RuntimeError("The core is closed")


def _packer(signature: str) -> Any:
    pad = f"{_VALUE_BYTES - 4}x"
    return struct.Struct("<" + "".join(code + pad for code in signature)).pack_into

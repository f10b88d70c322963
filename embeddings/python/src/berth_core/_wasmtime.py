"""What this package needs of Wasmtime's C API, through ctypes.

The wasmtime package compiles modules and frees what it made. Its own call of a Wasm
function asks for the function's type and converts value by value, each in C calls of
its own, some 20 to 70 µs in all; the C API's wasmtime_func_call_unchecked, on the same
library, takes 1 µs. It takes the caller's word for the types: _instance.py checks them
once per module.
"""

import ctypes
from ctypes import POINTER, Structure, c_char, c_size_t, c_uint8, c_uint64, c_void_p
from functools import cache
from importlib import metadata


class Extern(Structure):
    """wasmtime_extern_t: an exported function or memory, opaque here."""

    _fields_ = [("kind", c_uint8), ("item", c_uint64 * 4)]

    @property
    def address(self) -> int:
        """Where the item is: a wasmtime_func_t or wasmtime_memory_t."""
        return ctypes.addressof(self) + Extern.item.offset


class Bytes(Structure):
    """wasm_byte_vec_t."""

    _fields_ = [("size", c_size_t), ("data", POINTER(c_char))]


# The results and the parameters of each function; pointers are void.
_FUNCTIONS = {
    "wasmtime_store_context": (c_void_p, [c_void_p]),
    "wasmtime_instance_new": (c_void_p, [c_void_p] * 3 + [c_size_t] + [c_void_p] * 2),
    "wasmtime_instance_export_get": (
        ctypes.c_bool,
        [c_void_p, c_void_p, ctypes.c_char_p, c_size_t, c_void_p],
    ),
    "wasmtime_func_call_unchecked": (c_void_p, [c_void_p] * 3 + [c_size_t, c_void_p]),
    "wasmtime_memory_data": (c_void_p, [c_void_p] * 2),
    "wasmtime_memory_data_size": (c_size_t, [c_void_p] * 2),
    "wasmtime_memory_grow": (c_void_p, [c_void_p, c_void_p, c_uint64, c_void_p]),
    "wasmtime_error_message": (None, [c_void_p, c_void_p]),
    "wasmtime_error_delete": (None, [c_void_p]),
    "wasm_trap_message": (None, [c_void_p, c_void_p]),
    "wasm_trap_delete": (None, [c_void_p]),
    "wasm_byte_vec_delete": (None, [c_void_p]),
}


@cache
def library() -> ctypes.PyDLL:
    """The shared library that the wasmtime package brings.

    Calls are short, so they keep the interpreter's lock: it costs less than to give it
    away, and two threads at one instance cannot tear its memory.
    """
    files = metadata.files("wasmtime") or []
    file = next(file for file in files if file.suffix in (".so", ".dylib", ".dll"))
    opened = ctypes.PyDLL(str(file.locate()))
    for name, (result, parameters) in _FUNCTIONS.items():
        function = getattr(opened, name)
        function.restype = result
        function.argtypes = parameters
    return opened


def take_message(error: int | None, trap: int | None) -> str:
    """The text of a wasmtime_error_t or else of a wasm_trap_t, and the end of both."""
    opened, text = library(), Bytes()
    if error:
        opened.wasmtime_error_message(error, ctypes.byref(text))
        opened.wasmtime_error_delete(error)
    elif trap:
        opened.wasm_trap_message(trap, ctypes.byref(text))
        opened.wasm_trap_delete(trap)
    message = ctypes.string_at(text.data, text.size).decode(errors="replace")
    opened.wasm_byte_vec_delete(ctypes.byref(text))
    return message.rstrip("\0").partition("\n")[0]

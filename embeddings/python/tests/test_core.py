"""The instance: copies, ends, memory that grows, and modules that are not the core."""

import unittest
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from threading import Thread

from berth_core import Core, CoreStateError, CoreValueError, Policy, embedded
from berth_core.abi import MAX_EXCHANGE, MAX_SPARSE, SIGNATURES, Status
from wasmtime import wat2wasm

NETWORK = ip_network("10.0.0.0/24")


class Cores(unittest.TestCase):
    def test_a_copy_goes_its_own_way(self) -> None:
        with Core() as core:
            core.pool([ip_network("10.0.0.0/8")]).allocate_many(100_000)
            pool = core.pool([NETWORK])
            pool.allocate()
            with core.copy() as copy:
                self.assertEqual(image(copy), image(core))
                twin = pool.in_copy(copy)
                self.assertEqual(twin.allocate(), pool.allocate())
                self.assertEqual(image(copy), image(core))
                twin.allocate()
                self.assertEqual((pool.counts().used, twin.counts().used), (2, 3))

    def test_a_closed_core_is_gone(self) -> None:
        core = Core()
        pool = core.pool([NETWORK])
        core.close()
        core.close()
        for use in (
            core.live_objects,
            pool.allocate,
            pool.drop,
            core.copy,
            core.raw.buffer,
        ):
            with self.assertRaisesRegex(RuntimeError, "The core is closed"):
                use()
        with self.assertRaisesRegex(RuntimeError, "The core is closed"):
            pool.claim(IPv4Address("10.0.0.1"))
        with self.assertRaisesRegex(RuntimeError, "The core is closed"):
            core.raw.read(0, 1)

    def test_a_batch_that_moves_the_exchange_buffer(self) -> None:
        with Core() as core, core.pool([ip_network("10.0.0.0/8")]) as pool:
            pool.claim(IPv4Address("10.0.0.0"))
            before = core.raw.exchange(0)
            taken = pool.allocate_packed(1_000_000)
            self.assertNotEqual(core.raw.exchange(0), before)
            self.assertEqual(taken[:4], IPv4Address("10.0.0.1").packed)
            self.assertEqual(taken[-4:], (IPv4Address("10.0.0.0") + 1_000_000).packed)
            self.assertEqual(sum(pool.release_packed(taken)), 1_000_000)
            self.assertEqual(len(core.raw.buffer()), core.raw.exchange_size())
            self.assertEqual(core.raw.read(core.raw.exchange(0), 4), b"\1\1\1\1")
            self.assertEqual(core.raw.buffer()[:4], b"\1\1\1\1")

    def test_memory_that_grows_while_a_batch_is_claimed(self) -> None:
        with Core() as core, core.pool([ip_network("2001:db8::/32")]) as pool:
            first = int(IPv6Address("2001:db8:ffff::"))
            packed = b"".join(
                (first + n * 4096).to_bytes(16, "big") for n in range(50_000)
            )
            self.assertEqual(sum(pool.claim_packed(packed)), 50_000)
            self.assertEqual(sum(pool.test_packed(packed)), 50_000)
            self.assertEqual(pool.counts().beyond, 50_000)

    def test_a_batch_beyond_a_ceiling_says_how_far_it_came(self) -> None:
        with Core() as core, core.pool([ip_network("2001:db8::/32")]) as pool:
            first = int(IPv6Address("2001:db8:ffff::"))
            packed = b"".join(
                (first + n).to_bytes(16, "big") for n in range(MAX_SPARSE + 3)
            )
            with self.assertRaises(CoreStateError) as caught:
                pool.claim_packed(packed)
            self.assertEqual(caught.exception.status, Status.OVER_CEILING)
            self.assertEqual(caught.exception.done, MAX_SPARSE)
            self.assertEqual(pool.counts().used, MAX_SPARSE)

    def test_input_beyond_the_ceiling(self) -> None:
        with Core() as core, core.pool([NETWORK]) as pool:
            with self.assertRaisesRegex(CoreStateError, "OVER_CEILING"):
                pool.load(bytes(MAX_EXCHANGE + 1))
            self.assertEqual(pool.allocate(), IPv4Address("10.0.0.0"))

    def test_threads_that_share_a_core_do_not_tear_its_memory(self) -> None:
        with Core() as core, core.pool([ip_network("10.0.0.0/16")]) as pool:

            def take() -> None:
                for _ in range(2_000):
                    core.raw.pool_allocate(pool.handle, Policy.ASCENDING, 0)

            threads = [Thread(target=take) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertGreater(pool.counts().used, 0)

    def test_100_000_pools_one_after_another(self) -> None:
        with Core() as core, core.range_set([NETWORK]) as ranges:
            with core.range_set([]) as none:
                core.pool(ranges, none).drop()
                size = core.state_bytes()
                for _ in range(100_000):
                    core.pool(ranges, none).drop()
                self.assertEqual(core.state_bytes(), size)
            self.assertEqual(core.live_objects(), 1)

    def test_prefixes(self) -> None:
        with Core() as core:
            address = ip_address("10.1.2.3")
            self.assertEqual(core.prefix_first(address, 24), ip_address("10.1.2.0"))
            self.assertEqual(core.prefix_last(address, 24), ip_address("10.1.2.255"))
            self.assertEqual(core.prefix_mask(4, 20), ip_address("255.255.240.0"))
            self.assertEqual(core.prefix_next(NETWORK), ip_network("10.0.1.0/24"))
            self.assertIsNone(core.prefix_next(ip_network("255.255.255.0/24")))
            wide = ip_network("2001:db8::/32")
            part = core.prefix_part(wide, 64, (1 << 32) - 1)
            self.assertEqual(part, ip_network("2001:db8:ffff:ffff::/64"))
            self.assertIsNone(core.prefix_part(NETWORK, 26, 4))
            self.assertEqual(
                core.prefix_common(address, ip_address("10.1.3.3")),
                ip_network("10.1.2.0/23"),
            )
            for wrong in (33, -1):
                with self.assertRaisesRegex(CoreValueError, "BAD_ARGUMENT"):
                    core.prefix_first(address, wrong)
            with self.assertRaisesRegex(CoreValueError, "BAD_FAMILY"):
                core.prefix_common(address, ip_address("::1"))
            with self.assertRaisesRegex(CoreValueError, "BAD_FAMILY"):
                core.prefix_mask(5, 1)

    def test_the_raw_layer(self) -> None:
        with Core() as core, core.pool([NETWORK]) as pool:
            raw = core.raw
            ordinal = raw.pool_allocate(pool.handle, Policy.HASHED, (1 << 32) - 1)
            self.assertEqual(ordinal, 255)
            self.assertEqual(raw.pool_address(pool.handle, ordinal), Status.OK)
            self.assertEqual(raw.read(raw.exchange(0), 4), b"\n\0\0\xff")
            self.assertEqual(raw.pool_find_run(pool.handle, 0, 300, 0), Status.NONE)
            for args in (
                (1, 2, -1),
                (1, 2),
                (1, 2, 3, 4),
                (1 << 31, 2, 3),
                (1, "2", 3),
            ):
                with self.subTest(args), self.assertRaises(ValueError):
                    raw.call("pool_allocate", *args)
            with self.assertRaises(AttributeError):
                raw.call("pool_destroy", 1)
            for address, length in ((-1, 2), (0, 1 << 40), (1 << 40, 0)):
                with self.assertRaises(IndexError):
                    raw.read(address, length)

    def test_a_module_that_is_not_the_core(self) -> None:
        for module in (b"", b"\0asm", bytes(wat2wasm("(module)")), embedded()[:-9]):
            with self.subTest(len(module)), self.assertRaises(ValueError):
                Core(module)

    def test_a_module_that_only_looks_like_the_core(self) -> None:
        for extra, body, complaint in (
            ("", "unreachable", "abi_version failed: .*"),
            ('(import "" "" (func))', "unreachable", "instantiation failed: .*import"),
            ("(start 0)", "unreachable", "Not a WebAssembly module"),
        ):
            with self.subTest(extra), self.assertRaisesRegex(Exception, complaint):
                Core(lookalike(extra, body))

    def test_an_exchange_buffer_outside_the_memory(self) -> None:
        data = r'(data (i32.const 16) "\00\00\ff\7f\ff\00\00\00")'
        with Core(lookalike(data, "i32.const 65536")) as core:
            with self.assertRaises(IndexError):
                core.raw.buffer()

    def test_a_core_of_another_abi(self) -> None:
        one_point_nothing = b"\x41\x80\x80\x04\x0b"  # i32.const 65536, end
        self.assertEqual(embedded().count(one_point_nothing), 1)
        other = embedded().replace(one_point_nothing, b"\x41\x80\x80\x08\x0b")
        with self.assertRaisesRegex(CoreValueError, "major version 2, wanted 1"):
            Core(other)


def lookalike(extra: str, body: str) -> bytes:
    """A module with the exports of the core, each of which has the same body."""
    functions = [
        f'(func (export "{name}") (param {"i32 " * len(signature)}) (result i32) {body})'
        for name, signature in SIGNATURES.items()
    ]
    memory = '(memory (export "memory") 1)'
    return bytes(wat2wasm(f"(module {extra} {memory} {' '.join(functions)})"))


def image(core: Core) -> bytes:
    """The memory, as far as it is in use."""
    return core.raw.read(0, core.state_bytes())


if __name__ == "__main__":
    unittest.main()

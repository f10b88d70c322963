"""Pools of addresses."""

import unittest
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from berth_core import (
    Claim,
    Core,
    CoreStateError,
    CoreValueError,
    Load,
    Policy,
    Pool,
    Range,
    Release,
    pack,
    unpack,
)

NETWORK = ip_network("10.0.0.0/24")


def at(last: int) -> IPv4Address:
    return IPv4Address("10.0.0.0") + last


class Pools(unittest.TestCase):
    def setUp(self) -> None:
        self.core = Core()
        self.addCleanup(self.core.close)

    def pool(self, text: str = "10.0.0.0/24") -> Pool:
        return self.core.pool([ip_network(text)])

    def test_policies(self) -> None:
        pool = self.core.pool([NETWORK], [Range(at(0), at(1))])
        self.assertEqual(pool.allocate(), at(2))
        self.assertEqual(pool.allocate(Policy.HASHED, 256 + 77), at(77))
        self.assertEqual(pool.allocate(Policy.ROUND_ROBIN), at(3))
        pool.track_freed()
        pool.release(at(2))
        lasting = pool.allocate_many(1000, Policy.LEAST_RECENTLY_FREED)
        self.assertEqual((len(lasting), lasting[0], lasting[-1]), (252, at(4), at(2)))
        self.assertIsNone(pool.allocate())
        self.assertIsNone(pool.find_free(7))
        self.assertIsNone(pool.find_free_wide(7))
        self.assertEqual(pool.allocate_many(3), [])

    def test_a_policy_that_is_none(self) -> None:
        with self.assertRaises(CoreValueError) as caught:
            self.pool().allocate(9)  # type: ignore[arg-type]
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(CoreValueError):
            self.pool().allocate(Policy.LEAST_RECENTLY_FREED)
        with self.assertRaisesRegex(ValueError, "pool_allocate_many"):
            self.pool().allocate(Policy.HASHED, 1 << 32)
        with self.assertRaises(CoreValueError):
            self.pool().allocate_many(-1)

    def test_claim_and_release(self) -> None:
        pool = self.pool()
        self.assertEqual(pool.claim(at(9)), Claim.CLAIMED)
        self.assertEqual(pool.claim(at(9)), Claim.TAKEN)
        self.assertTrue(pool.test(at(9)))
        self.assertEqual(pool.claim(at(256)), Claim.OUTSIDE)
        self.assertEqual(pool.release(at(9)), Release.RELEASED)
        self.assertEqual(pool.release(at(9)), Release.FREE)
        self.assertEqual(pool.release(at(256)), Release.OUTSIDE)
        self.assertFalse(pool.test(at(256)))

    def test_the_other_family_is_outside(self) -> None:
        mapped = ip_address("::ffff:10.0.0.9")
        four, six = self.pool(), self.pool("::ffff:10.0.0.0/120")
        self.assertEqual(four.claim(mapped), Claim.OUTSIDE)
        self.assertEqual(four.release(mapped), Release.OUTSIDE)
        self.assertEqual((mapped in four, four.test(mapped)), (False, False))
        self.assertEqual(six.claim(mapped), Claim.CLAIMED)
        self.assertEqual(six.claim(at(9)), Claim.OUTSIDE)
        self.assertEqual(
            four.claim_many([at(1), mapped, at(1), at(256)]),
            [Claim.CLAIMED, Claim.OUTSIDE, Claim.TAKEN, Claim.OUTSIDE],
        )

    def test_an_address_with_a_zone_is_outside(self) -> None:
        pool = self.pool("fe80::/64")
        zoned = ip_address("fe80::1%eth0")
        self.assertEqual(pool.claim(zoned), Claim.OUTSIDE)
        self.assertEqual(pool.release_many([zoned]), [Release.OUTSIDE])
        self.assertNotIn(zoned, pool)
        self.assertEqual(pool.counts().used, 0)

    def test_what_is_no_address(self) -> None:
        for wrong in ("10.0.0.1", 7, None, NETWORK):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.pool().claim(wrong)  # type: ignore[arg-type]

    def test_batches(self) -> None:
        pool = self.core.pool([NETWORK], [Range(at(0), at(0))])
        some = [at(0), at(1), at(2), at(300)]
        self.assertEqual(pool.contains_many(some), [False, True, True, False])
        self.assertEqual(list(pool.claim_packed(pack(some[:2], 4))), [1, 1])
        self.assertEqual(pool.test_many(some), [True, True, False, False])
        self.assertEqual(
            pool.release_many(some),
            [Release.RELEASED, Release.RELEASED, Release.FREE, Release.OUTSIDE],
        )
        self.assertEqual(list(pool.release_packed(pack(some, 4))), [0, 0, 0, -8])
        self.assertEqual(list(pool.test_packed(b"")), [])
        packed = pool.allocate_packed(3)
        self.assertEqual(unpack(packed, 4), [at(1), at(2), at(3)])
        self.assertEqual(list(pool.contains_packed(packed)), [1, 1, 1])

    def test_runs(self) -> None:
        pool = self.pool()
        pool.claim(at(5))
        run = pool.find_free_run(8, align_bits=3)
        self.assertEqual(run, Range(at(8), at(15)))
        assert run is not None
        self.assertEqual(pool.claim_run(run), Claim.CLAIMED)
        self.assertEqual(pool.claim_run(Range(at(15), at(20))), Claim.TAKEN)
        self.assertFalse(pool.test(at(16)))
        self.assertEqual(pool.release_run(Range(at(4), at(8))), 2)
        self.assertEqual(pool.claim_run(Range(at(250), at(256))), Claim.OUTSIDE)
        self.assertEqual(pool.claim_run(Range(at(9), at(8))), Claim.OUTSIDE)
        self.assertIsNone(pool.release_run(Range(at(250), at(256))))
        self.assertIsNone(pool.find_free_run(257))
        with self.assertRaises(CoreValueError):
            pool.find_free_run(0)

    def test_a_run_does_not_leap_a_gap(self) -> None:
        pool = self.core.pool([Range(at(0), at(3)), Range(at(8), at(11))])
        self.assertEqual(pool.claim_run(Range(at(2), at(9))), Claim.OUTSIDE)
        self.assertEqual(pool.claim_run(Range(at(2), at(3))), Claim.CLAIMED)

    def test_beyond_the_window(self) -> None:
        pool = self.pool("2001:db8::/64")
        far = pool.find_free_wide(0x1234_5678_9ABC_DEF0)
        self.assertEqual(far, IPv6Address("2001:db8::1234:5678:9abc:def0"))
        assert far is not None
        self.assertEqual(pool.claim(far), Claim.CLAIMED)
        self.assertEqual(pool.counts().beyond, 1)
        self.assertEqual(pool.counts().free, (1 << 64) - 1)
        self.assertEqual(pool.claim_run(Range(far, far + 1)), Claim.OUTSIDE)
        with self.assertRaises(OverflowError):
            pool.find_free_wide(1 << 128)

    def test_counts(self) -> None:
        pool = self.core.pool([NETWORK], [Range(at(0), at(9))])
        pool.claim_many([at(0), at(10), at(11)])
        counts = pool.counts()
        self.assertEqual(counts[:6], (246, 3, 1, 244, 256, 0))
        self.assertEqual(counts.digest, self.pool().counts().digest)
        self.assertEqual(pool.free_per_block(), [244])
        self.assertEqual(pool.used().size(), 3)
        self.assertEqual(pool.ranges().prefixes(), [NETWORK])
        self.assertEqual(pool.masks().ranges(), [Range(at(0), at(9))])

    def test_edit_keeps_what_is_still_inside(self) -> None:
        pool = self.pool()
        pool.claim_many([at(1), at(200)])
        with self.core.range_set([Range(at(200), at(300))]) as ranges:
            pool.edit(ranges, [Range(at(300), at(300))])
        self.assertEqual(list(pool.used()), [at(200)])
        self.assertNotIn(at(300), pool)
        with self.assertRaisesRegex(CoreValueError, "BAD_FAMILY"):
            pool.edit([ip_network("::/64")])
        self.assertEqual(list(pool.used()), [at(200)])

    def test_snapshots(self) -> None:
        pool, same, other = self.pool(), self.pool(), self.pool("10.0.0.0/25")
        pool.claim_many([at(1), at(200)])
        saved = pool.save()
        self.assertEqual(same.load(saved), Load.LOADED)
        self.assertEqual(list(same.used()), [at(1), at(200)])
        damaged = saved[:-1] + bytes([saved[-1] ^ 1])
        for content, wanted in (
            (damaged, Load.DAMAGED),
            (b"", Load.DAMAGED),
            (saved[:20], Load.DAMAGED),
        ):
            self.assertEqual(same.load(content), wanted)
        self.assertEqual(other.load(saved), Load.OTHER_POOL)
        self.assertEqual(same.save(), saved)

    def test_a_dropped_pool_is_gone(self) -> None:
        pool = self.pool()
        handle = pool.handle
        pool.drop()
        pool.drop()
        for use in (
            lambda: pool.claim(at(1)),
            lambda: pool.allocate(),
            lambda: pool.claim_many([at(1)]),
            lambda: pool.load(b""),
            lambda: pool.edit([NETWORK]),
            lambda: pool.counts(),
        ):
            with self.assertRaisesRegex(CoreStateError, "BAD_HANDLE"):
                use()
        self.assertEqual(self.core.raw.pool_claim(handle), -1)
        with self.core.range_set([NETWORK]) as ranges:
            self.assertEqual(self.core.raw.pool_claim(ranges.handle), -1)
        self.assertEqual(self.core.live_objects(), 0)


if __name__ == "__main__":
    unittest.main()

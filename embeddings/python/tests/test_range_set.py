"""Sets of addresses."""

import unittest
from ipaddress import ip_address, ip_network

from berth_core import Core, CoreStateError, CoreValueError, Range, pack


def span(first: str, last: str) -> Range:
    return Range(ip_address(first), ip_address(last))


class RangeSets(unittest.TestCase):
    def setUp(self) -> None:
        self.core = Core()
        self.addCleanup(self.core.close)

    def test_algebra(self) -> None:
        a = self.core.range_set(
            [span("10.0.0.0", "10.0.0.9"), ip_network("10.0.1.0/24")]
        )
        b = self.core.range_set_of_prefixes([ip_network("10.0.0.8/29")])
        self.assertEqual(
            a.union(b).ranges(),
            [span("10.0.0.0", "10.0.0.15"), span("10.0.1.0", "10.0.1.255")],
        )
        self.assertEqual(a.intersect(b).ranges(), [span("10.0.0.8", "10.0.0.9")])
        self.assertEqual(b.subtract(a).ranges(), [span("10.0.0.10", "10.0.0.15")])
        self.assertEqual((a.overlaps(b), a.includes(b)), (True, False))
        self.assertTrue(a.union(b).includes(b))

    def test_size_count_and_prefixes(self) -> None:
        with self.core.range_set([span("10.0.0.1", "10.0.0.6")]) as some:
            self.assertEqual((some.size(), some.range_count(), some.family), (6, 1, 4))
            self.assertEqual(
                [str(prefix) for prefix in some.prefixes()],
                ["10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6/32"],
            )
            self.assertEqual([int(address) & 7 for address in some], [1, 2, 3, 4, 5, 6])

    def test_everything_of_ipv6(self) -> None:
        with self.core.range_set([ip_network("::/0")]) as all_of_it:
            self.assertEqual(all_of_it.size(), 1 << 128)
            self.assertEqual(all_of_it.prefixes(), [ip_network("::/0")])
            self.assertEqual(next(iter(all_of_it)), ip_address("::"))

    def test_no_ranges(self) -> None:
        with self.core.range_set([], family=6) as none:
            self.assertEqual((none.size(), none.ranges(), none.family), (0, [], 6))
            self.assertEqual(none.contains_many([]), [])

    def test_membership(self) -> None:
        with self.core.range_set([ip_network("10.0.0.0/30")]) as four:
            asked = ["10.0.0.3", "10.0.0.4", "::ffff:10.0.0.3", "10.0.0.0"]
            addresses = [ip_address(text) for text in asked]
            self.assertEqual(four.contains_many(addresses), [True, False, False, True])
            self.assertEqual([a in four for a in addresses], [True, False, False, True])
            packed = pack([addresses[0], addresses[1]], 4)
            self.assertEqual(four.contains_packed(packed), b"\1\0")
            with self.assertRaisesRegex(CoreValueError, "5 bytes, wanted a multiple"):
                four.contains_packed(b"12345")

    def test_an_address_with_a_zone_is_in_no_set(self) -> None:
        with self.core.range_set([ip_network("fe80::/10")]) as local:
            self.assertNotIn(ip_address("fe80::1%eth0"), local)
            self.assertIn(ip_address("fe80::1"), local)
        with self.assertRaisesRegex(CoreValueError, "fe80::1%eth0"):
            self.core.range_set([span("fe80::1%eth0", "fe80::2")])

    def test_what_is_no_range(self) -> None:
        with self.assertRaisesRegex(CoreValueError, r"set_create refused .*BAD_RANGE"):
            self.core.range_set([span("10.0.0.2", "10.0.0.1")])
        with self.assertRaisesRegex(CoreValueError, "BAD_FAMILY"):
            self.core.range_set([span("10.0.0.2", "::1")])
        with self.assertRaisesRegex(CoreValueError, "BAD_FAMILY"):
            self.core.range_set([], family=0)
        for wrong in ("10.0.0.0/8", ("10.0.0.1", "10.0.0.2"), (ip_address("::"),), 7):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.core.range_set([wrong])  # type: ignore[list-item]
        self.assertEqual(self.core.live_objects(), 0)

    def test_two_families_and_two_instances_do_not_mix(self) -> None:
        four = self.core.range_set([ip_network("10.0.0.0/8")])
        with self.assertRaisesRegex(CoreValueError, "BAD_FAMILY"):
            four.union(self.core.range_set([ip_network("::/64")]))
        with Core() as other, self.assertRaisesRegex(ValueError, "two instances"):
            four.overlaps(other.range_set([ip_network("10.0.0.0/8")]))

    def test_a_dropped_set_is_gone(self) -> None:
        with self.core.range_set([ip_network("10.0.0.0/8")]) as gone:
            gone.drop()
        with self.assertRaises(CoreStateError) as caught:
            gone.size()
        self.assertIsInstance(caught.exception, RuntimeError)
        self.assertEqual(caught.exception.operation, "set_size")
        self.assertEqual(caught.exception.status.name, "BAD_HANDLE")
        self.assertEqual(
            str(caught.exception),
            "set_size refused with BAD_HANDLE (-1): "
            "No live object of the wanted kind has this handle.",
        )


if __name__ == "__main__":
    unittest.main()

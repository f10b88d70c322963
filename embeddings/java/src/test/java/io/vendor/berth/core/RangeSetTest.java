package io.vendor.berth.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.vendor.berth.core.Abi.Status;
import java.math.BigInteger;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class RangeSetTest {
  private final Core core = Core.open();

  private RangeSet set(Family family, String... ranges) {
    return core.rangeSet(family, Stream.of(ranges).map(AddressRange::parse).toList());
  }

  private static void assertRanges(RangeSet set, String... ranges) {
    assertEquals(List.of(ranges), set.ranges().stream().map(AddressRange::toString).toList());
  }

  @Test
  void joinsRangesThatTouch() {
    RangeSet set = set(Family.IPV4, "10.0.0.8-10.0.0.9", "10.0.0.0-10.0.0.7", "10.0.1.0");
    assertRanges(set, "10.0.0.0-10.0.0.9", "10.0.1.0-10.0.1.0");
    assertEquals(2, set.rangeCount());
    assertEquals(BigInteger.valueOf(11), set.size());
  }

  @Test
  void doesTheAlgebraOfSets() {
    RangeSet left = set(Family.IPV4, "10.0.0.0-10.0.0.9");
    RangeSet right = set(Family.IPV4, "10.0.0.5-10.0.0.20");
    assertRanges(left.union(right), "10.0.0.0-10.0.0.20");
    assertRanges(left.intersect(right), "10.0.0.5-10.0.0.9");
    assertRanges(left.subtract(right), "10.0.0.0-10.0.0.4");
    assertTrue(left.overlaps(right));
    assertFalse(left.includes(right));
    assertTrue(left.union(right).includes(left));
    assertEquals(6, core.liveObjects(), "none of the six sets is closed");
  }

  @Test
  void countsUpToAllOfIpv6() {
    RangeSet all = core.prefixSet(Family.IPV6, List.of(Prefix.parse("::/0")));
    assertEquals(BigInteger.TWO.pow(128), all.size());
    assertEquals(List.of(Prefix.parse("::/0")), all.prefixes());
  }

  @Test
  void coversRangesWithTheFewestPrefixes() {
    RangeSet set = set(Family.IPV4, "10.0.0.1-10.0.0.6");
    List<String> wanted = List.of("10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6/32");
    assertEquals(wanted, set.prefixes().stream().map(Prefix::toString).toList());
  }

  @Test
  void containsNothingOfAnotherFamilyOrWithAZone() throws Exception {
    InetAddress linkLocal = Addresses.parse("fe80::1");
    InetAddress zoned = Inet6Address.getByAddress(null, linkLocal.getAddress(), 2);
    RangeSet all = set(Family.IPV6, "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    InetAddress v4 = Addresses.parse("10.0.0.1");
    assertTrue(all.contains(linkLocal));
    assertFalse(all.contains(zoned));
    assertFalse(all.contains(v4));
    InetAddress mapped = Addresses.parse("::ffff:10.0.0.1");
    boolean[] flags = all.containsMany(List.of(zoned, linkLocal, v4, mapped));
    assertArrayEquals(new boolean[] {false, true, false, true}, flags);
    assertArrayEquals(new byte[] {1}, all.containsPacked(mapped.getAddress()));
  }

  @Test
  void refusesWhatIsNoSet() {
    assertStatus(Status.BAD_RANGE, () -> set(Family.IPV4, "10.0.0.9-10.0.0.0"));
    assertStatus(Status.BAD_FAMILY, () -> set(Family.IPV4, "::1"));
    assertStatus(Status.BAD_FAMILY, () -> set(Family.IPV4).union(set(Family.IPV6)));
    assertStatus(Status.BAD_ARGUMENT, () -> set(Family.IPV4).containsPacked(new byte[3]));
    Prefix prefix = Prefix.parse("::/0");
    assertStatus(Status.BAD_FAMILY, () -> core.prefixSet(Family.IPV4, List.of(prefix)));
  }

  @Test
  void isRefusedOnceItIsClosedAndInAnotherCore() {
    RangeSet set = set(Family.IPV4, "10.0.0.0");
    RangeSet other = Core.open().rangeSet(Family.IPV4, List.of());
    assertThrows(IllegalArgumentException.class, () -> set.union(other));
    set.close();
    set.close();
    assertStatus(Status.BAD_HANDLE, set::size);
    assertEquals(0, core.liveObjects());
  }

  static void assertStatus(Status status, Executable action) {
    assertEquals(status, assertThrows(CoreException.class, action).status());
  }
}

package io.vendor.berth.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.vendor.berth.core.Abi.Policy;
import java.math.BigInteger;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class PoolTest {
  private final Core core = Core.open();

  private static List<AddressRange> ranges(String... texts) {
    return Stream.of(texts).map(AddressRange::parse).toList();
  }

  private Pool pool(String... texts) {
    return core.createPool(ranges(texts), List.of());
  }

  private static InetAddress ip(String text) {
    return Addresses.parse(text);
  }

  @Test
  void allocatesByPolicyUntilNothingIsFree() {
    Pool pool = core.createPool(ranges("10.0.0.0-10.0.0.3"), ranges("10.0.0.0"));
    assertEquals(Optional.of(ip("10.0.0.2")), pool.allocate(Policy.HASHED, 2));
    assertEquals(Optional.of(ip("10.0.0.1")), pool.allocate(Policy.ASCENDING));
    assertEquals(List.of(ip("10.0.0.3")), pool.allocateMany(9, Policy.ROUND_ROBIN, 0));
    assertEquals(Optional.empty(), pool.allocate(Policy.ASCENDING));
    assertEquals(Optional.empty(), pool.findFree(0));
    assertEquals(List.of(), pool.allocateMany(1, Policy.ASCENDING, 0));
  }

  @Test
  void givesBackFirstWhatIsFreeForLongest() {
    Pool pool = pool("10.0.0.0-10.0.0.1");
    pool.trackFreed();
    pool.allocateMany(2, Policy.ASCENDING, 0);
    pool.release(ip("10.0.0.1"));
    pool.release(ip("10.0.0.0"));
    assertEquals(Optional.of(ip("10.0.0.1")), pool.allocate(Policy.LEAST_RECENTLY_FREED));
  }

  @Test
  void claimsAndReleasesOneByOne() {
    Pool pool = core.createPool(ranges("10.0.0.0-10.0.0.9"), ranges("10.0.0.9"));
    assertEquals(ClaimResult.CLAIMED, pool.claim(ip("10.0.0.5")));
    assertEquals(ClaimResult.TAKEN, pool.claim(ip("10.0.0.5")));
    assertEquals(ClaimResult.OUTSIDE, pool.claim(ip("10.0.0.10")));
    assertTrue(pool.test(ip("10.0.0.5")));
    assertEquals(ReleaseResult.RELEASED, pool.release(ip("10.0.0.5")));
    assertEquals(ReleaseResult.FREE, pool.release(ip("10.0.0.5")));
    assertEquals(ReleaseResult.OUTSIDE, pool.release(ip("10.0.0.10")));
    assertTrue(pool.contains(ip("10.0.0.0")));
    assertFalse(pool.contains(ip("10.0.0.9")));
  }

  @Test
  void takesManyAtOnce() {
    Pool pool = pool("10.0.0.0-10.0.0.9");
    List<InetAddress> addresses =
        List.of(ip("10.0.0.1"), ip("::1"), ip("10.0.0.1"), ip("10.1.0.0"));
    List<ClaimResult> claims = pool.claimMany(addresses);
    ClaimResult outside = ClaimResult.OUTSIDE;
    assertEquals(List.of(ClaimResult.CLAIMED, outside, ClaimResult.TAKEN, outside), claims);
    assertArrayEquals(new boolean[] {true, false, true, false}, pool.testMany(addresses));
    assertArrayEquals(new boolean[] {true, false, true, false}, pool.containsMany(addresses));
    assertEquals(ReleaseResult.RELEASED, pool.releaseMany(addresses).get(0));
    byte[] packed = pool.allocatePacked(3, Policy.ASCENDING, 0);
    assertArrayEquals(new byte[] {10, 0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, packed);
    assertEquals(0, pool.claimPacked(packed));
    assertArrayEquals(new byte[] {1, 1, 1}, pool.testPacked(packed));
    assertArrayEquals(new byte[] {1, 1, 1}, pool.containsPacked(packed));
    assertEquals(3, pool.releasePacked(packed));
  }

  @Test
  void claimsRunsAllOrNothing() {
    Pool pool = pool("10.0.0.0-10.0.0.31", "10.0.0.64-10.0.0.95");
    AddressRange run = pool.findFreeRun(8, 3, 1).orElseThrow();
    assertEquals("10.0.0.8-10.0.0.15", run.toString());
    assertEquals(ClaimResult.CLAIMED, pool.claimRun(run));
    assertEquals(ClaimResult.TAKEN, pool.claimRun(AddressRange.parse("10.0.0.15-10.0.0.16")));
    assertFalse(pool.test(ip("10.0.0.16")));
    AddressRange gap = AddressRange.parse("10.0.0.20-10.0.0.70");
    assertEquals(ClaimResult.OUTSIDE, pool.claimRun(gap));
    assertEquals(OptionalInt.empty(), pool.releaseRun(gap));
    assertEquals(OptionalInt.of(8), pool.releaseRun(AddressRange.parse("10.0.0.0-10.0.0.31")));
    assertEquals(Optional.empty(), pool.findFreeRun(33, 0, 0));
  }

  @Test
  void findsAddressesBeyondTheWindow() {
    Pool pool = pool("2001:db8::-2001:db8::ffff:ffff:ffff:ffff");
    InetAddress far = ip("2001:db8::1234:5678:9abc:def0");
    BigInteger seed = new BigInteger("123456789abcdef0", 16);
    assertEquals(Optional.of(far), pool.findFreeWide(seed));
    assertEquals(ClaimResult.CLAIMED, pool.claim(far));
    assertEquals(1, pool.counts().beyond());
    assertEquals(Optional.of(ip("2001:db8::1234:5678:9abc:def1")), pool.findFreeWide(seed));
    InetAddress last = ip("2001:db8::ffff:ffff:ffff:ffff");
    assertEquals(Optional.of(last), pool.findFreeWide(BigInteger.ONE.negate()));
    BigInteger seed200 = BigInteger.TWO.pow(200).subtract(BigInteger.ONE);
    assertEquals(Optional.of(last), pool.findFreeWide(seed200));
    assertEquals(BigInteger.TWO.pow(64).subtract(BigInteger.ONE), pool.counts().free());
  }

  @Test
  void countsWhatItHolds() {
    Pool pool = core.createPool(ranges("10.0.0.0-10.0.31.255"), ranges("10.0.0.0"));
    pool.claimMany(List.of(ip("10.0.0.0"), ip("10.0.0.1")));
    PoolCounts counts = pool.counts();
    assertEquals(BigInteger.valueOf(8191), counts.total());
    assertEquals(BigInteger.valueOf(8190), counts.free());
    assertEquals(2, counts.used());
    assertEquals(1, counts.usedMasked());
    assertEquals(8192, counts.window());
    assertEquals(0, counts.beyond());
    assertArrayEquals(new int[] {4094, 4096}, pool.freePerBlock());
    assertEquals(ranges("10.0.0.0-10.0.0.1"), pool.used().ranges());
    assertEquals(ranges("10.0.0.0-10.0.31.255"), pool.ranges().ranges());
    assertEquals(ranges("10.0.0.0"), pool.masks().ranges());
  }

  @Test
  void keepsWhatIsUsedWhenItIsEdited() {
    Pool pool = pool("10.0.0.0-10.0.0.9");
    pool.claimMany(List.of(ip("10.0.0.1"), ip("10.0.0.8")));
    pool.edit(ranges("10.0.0.5-10.0.0.20"), List.of());
    assertEquals(ranges("10.0.0.8"), pool.used().ranges());
  }

  @Test
  void savesAndLoads() {
    Pool pool = pool("10.0.0.0-10.0.0.9");
    pool.claim(ip("10.0.0.7"));
    byte[] snapshot = pool.save();
    Pool twin = pool("10.0.0.0-10.0.0.9");
    assertEquals(LoadResult.LOADED, twin.load(snapshot));
    assertTrue(twin.test(ip("10.0.0.7")));
    assertEquals(pool.counts(), twin.counts());
    assertEquals(LoadResult.OTHER_POOL, pool("10.0.0.0").load(snapshot));
    assertEquals(LoadResult.DAMAGED, twin.load(new byte[0]));
    for (int place = 0; place < snapshot.length; place++) {
      byte[] damaged = snapshot.clone();
      damaged[place] ^= 1;
      assertFalse(twin.load(damaged) == LoadResult.LOADED, "byte " + place);
    }
    assertTrue(twin.test(ip("10.0.0.7")));
  }

  @Test
  void goesASeparateWayInACopy() {
    Pool pool = pool("10.0.0.0-10.0.0.9");
    pool.claim(ip("10.0.0.1"));
    RangeSet used = pool.used();
    Core copy = core.copy();
    Pool twin = pool.in(copy);
    assertEquals(Optional.of(ip("10.0.0.0")), twin.allocate(Policy.ASCENDING));
    assertFalse(pool.test(ip("10.0.0.0")));
    assertTrue(twin.test(ip("10.0.0.1")));
    assertEquals(used.ranges(), used.in(copy).ranges());
  }

  @Test
  void hasNothingOfTheOtherFamilyOrWithAZone() throws Exception {
    Pool pool = pool("fe80::-fe80::ff");
    InetAddress zoned = Inet6Address.getByAddress(null, ip("fe80::1").getAddress(), 2);
    for (InetAddress address : List.of(zoned, ip("10.0.0.1"))) {
      assertEquals(ClaimResult.OUTSIDE, pool.claim(address));
      assertEquals(ReleaseResult.OUTSIDE, pool.release(address));
      assertFalse(pool.test(address));
      assertFalse(pool.contains(address));
    }
  }

  @Test
  void handsOutMappedAddressesAsIpv6() {
    Pool pool = pool("::ffff:10.0.0.0-::ffff:10.0.0.1");
    InetAddress mapped = pool.allocate(Policy.ASCENDING).orElseThrow();
    assertEquals(ip("::ffff:10.0.0.0"), mapped);
    assertEquals(ClaimResult.OUTSIDE, pool.claim(ip("10.0.0.1")));
    assertEquals(ReleaseResult.RELEASED, pool.release(mapped));
  }
}

package io.vendor.berth.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.vendor.berth.core.Abi.Status;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class PrefixesTest {
  private final Prefixes prefixes = Core.open().prefixes();

  @Test
  void knowsTheEndsAndTheMask() {
    Prefix prefix = Prefix.parse("10.1.2.3/20");
    assertEquals(Addresses.parse("10.1.0.0"), prefixes.first(prefix));
    assertEquals(Addresses.parse("10.1.15.255"), prefixes.last(prefix));
    assertEquals(Addresses.parse("255.255.240.0"), prefixes.mask(Family.IPV4, 20));
    assertEquals(Addresses.parse("ffff:fff8::"), prefixes.mask(Family.IPV6, 29));
  }

  @Test
  void goesToTheNextAndEndsAtTheLast() {
    Optional<Prefix> next = prefixes.next(Prefix.parse("10.0.0.7/24"));
    assertEquals(Optional.of(Prefix.parse("10.0.1.0/24")), next);
    assertEquals(Optional.empty(), prefixes.next(Prefix.parse("255.255.255.0/24")));
  }

  @Test
  void splitsIntoParts() {
    Prefix prefix = Prefix.parse("2001:db8::/32");
    Optional<Prefix> last = Optional.of(Prefix.parse("2001:db8:ffff::/48"));
    assertEquals(last, prefixes.part(prefix, 48, 0xffff));
    assertEquals(Optional.empty(), prefixes.part(prefix, 48, 0x10000));
    Prefix all = Prefix.parse("::/0");
    assertEquals(Optional.of(Prefix.parse("ffff:ffff::/32")), prefixes.part(all, 32, -1));
  }

  @Test
  void findsWhatTwoAddressesShare() {
    Prefix common = prefixes.common(Addresses.parse("10.0.0.1"), Addresses.parse("10.0.3.1"));
    assertEquals(Prefix.parse("10.0.0.0/22"), common);
  }

  @Test
  void refusesLengthsAndFamilies() {
    RangeSetTest.assertStatus(Status.BAD_ARGUMENT, () -> prefixes.mask(Family.IPV4, 33));
    Prefix prefix = Prefix.parse("10.0.0.0/24");
    RangeSetTest.assertStatus(Status.BAD_ARGUMENT, () -> prefixes.part(prefix, 23, 0));
    RangeSetTest.assertStatus(
        Status.BAD_FAMILY,
        () -> prefixes.common(Addresses.parse("10.0.0.1"), Addresses.parse("::1")));
  }
}

package io.vendor.berth.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TextTest {
  @ParameterizedTest
  @CsvSource({
    "0.0.0.0, 00000000",
    "10.0.255.1, 0a00ff01",
    "::, 00000000000000000000000000000000",
    "::1, 00000000000000000000000000000001",
    "2001:db8::, 20010db8000000000000000000000000",
    "1:2:3:4:5:6:7:8, 00010002000300040005000600070008",
    "1:2:3:4:5:6:7::, 00010002000300040005000600070000",
    "fe80::A:b, fe8000000000000000000000000a000b",
    "::ffff:10.0.0.1, 00000000000000000000ffff0a000001",
    "64:ff9b::192.0.2.1, 0064ff9b0000000000000000c0000201",
  })
  void readsAnAddress(String text, String bytes) {
    assertEquals(bytes, HexFormat.of().formatHex(Addresses.parse(text).getAddress()));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", "localhost", "10.0.0", "10.0.0.256", "10.0.0.01", "10.0.0.1 ", "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", "1::2::3", ":::", "12345::", "fe80::1%eth0",
        "::1.2.3", "1.2.3.4::", "1:2:3:4:5:6:7:1.2.3.4", "-1.0.0.0", "1:", ":1", "::g"
      })
  void refusesWhatIsNoAddress(String text) {
    assertThrows(IllegalArgumentException.class, () -> Addresses.parse(text));
  }

  @Test
  void readsRangesAndPrefixes() {
    assertEquals("10.0.0.1-10.0.0.9", AddressRange.parse("10.0.0.1-10.0.0.9").toString());
    assertEquals("10.0.0.1-10.0.0.1", AddressRange.parse("10.0.0.1").toString());
    assertEquals("2001:db8:0:0:0:0:0:0/32", Prefix.parse("2001:db8::/32").toString());
  }

  @ParameterizedTest
  @ValueSource(strings = {"10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "::/129", "::/-1"})
  void refusesWhatIsNoPrefix(String text) {
    assertThrows(IllegalArgumentException.class, () -> Prefix.parse(text));
  }

  @Test
  void refusesRangesOfTwoFamiliesAndZones() throws UnknownHostException {
    InetAddress zoned =
        Inet6Address.getByAddress(null, Addresses.parse("fe80::1").getAddress(), 2);
    assertThrows(IllegalArgumentException.class, () -> AddressRange.parse("10.0.0.1-::1"));
    assertThrows(IllegalArgumentException.class, () -> AddressRange.of(zoned));
    assertThrows(IllegalArgumentException.class, () -> new Prefix(zoned, 64));
  }

  @Test
  void keepsMappedAddressesInIpv6WhereJavaWouldNot() throws UnknownHostException {
    InetAddress mapped = Addresses.parse("::ffff:10.0.0.1");
    assertInstanceOf(Inet6Address.class, mapped);
    assertInstanceOf(Inet4Address.class, InetAddress.getByAddress(mapped.getAddress()));
    assertEquals(Family.IPV6, Family.of(mapped));
  }

  @Test
  void packsAddressesOfOneFamily() {
    List<InetAddress> addresses = List.of(Addresses.parse("10.0.0.1"), Addresses.parse("10.0.0.2"));
    byte[] packed = Family.IPV4.pack(addresses);
    assertArrayEquals(new byte[] {10, 0, 0, 1, 10, 0, 0, 2}, packed);
    assertEquals(addresses, Family.IPV4.unpack(packed));
    assertThrows(IllegalArgumentException.class, () -> Family.IPV6.pack(addresses));
    assertThrows(IllegalArgumentException.class, () -> Family.IPV6.address(new byte[4]));
  }
}

package io.vendor.berth.core;

import java.math.BigInteger;
import java.net.InetAddress;
import java.util.Objects;

/**
 * The addresses from {@code first} to {@code last}, both included. That the first is not above the
 * last is for the core to check.
 */
public record AddressRange(InetAddress first, InetAddress last) {
  /** Throws IllegalArgumentException on two families, or a zone. */
  public AddressRange {
    first = Family.plain(Objects.requireNonNull(first, "first"));
    last = Family.plain(Objects.requireNonNull(last, "last"));
    if (Family.of(first) != Family.of(last)) {
      throw new IllegalArgumentException(
          "A range of two families: " + first.getHostAddress() + "-" + last.getHostAddress());
    }
  }

  /** A range of one address. */
  public static AddressRange of(InetAddress address) {
    return new AddressRange(address, address);
  }

  /** Reads {@code 10.0.0.1-10.0.0.9}, {@code 10.0.0.1} or the same in IPv6. */
  public static AddressRange parse(String text) {
    int dash = text.indexOf('-');
    if (dash < 0) return of(Addresses.parse(text));
    return new AddressRange(
        Addresses.parse(text.substring(0, dash)), Addresses.parse(text.substring(dash + 1)));
  }

  public Family family() {
    return Family.of(first);
  }

  /** The number of addresses; 0 or below when the first is above the last. */
  public BigInteger size() {
    BigInteger start = new BigInteger(1, first.getAddress());
    return new BigInteger(1, last.getAddress()).subtract(start).add(BigInteger.ONE);
  }

  @Override
  public String toString() {
    return first.getHostAddress() + "-" + last.getHostAddress();
  }
}

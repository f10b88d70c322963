package io.vendor.berth.core;

import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;

/** The two kinds of addresses. All addresses of one set or pool are of one family. */
public enum Family {
  IPV4(4, 4),
  IPV6(6, 16);

  private final int version;
  private final int widthBytes;

  Family(int version, int widthBytes) {
    this.version = version;
    this.widthBytes = widthBytes;
  }

  /** What the raw calls take: 4 or 6. */
  public int version() {
    return version;
  }

  /** Bytes of an address: 4 or 16. */
  public int widthBytes() {
    return widthBytes;
  }

  /** Bits of an address: 32 or 128. */
  public int bits() {
    return 8 * widthBytes;
  }

  /**
   * The family by the class of the address. Java itself makes an Inet4Address of an IPv4-mapped
   * IPv6 address (::ffff:10.0.0.1) almost everywhere; one that is an Inet6Address is IPv6.
   */
  public static Family of(InetAddress address) {
    return address instanceof Inet4Address ? IPV4 : IPV6;
  }

  /**
   * The address with these 4 or 16 big-endian bytes: in IPv6 always an Inet6Address, an IPv4-mapped
   * one too. Throws IllegalArgumentException on another length.
   */
  public InetAddress address(byte[] bytes) {
    if (bytes.length != widthBytes) {
      throw new IllegalArgumentException(
          "An address of " + this + " has " + widthBytes + " bytes, not " + bytes.length);
    }
    try {
      // The general getByAddress would make IPv4 of an IPv4-mapped address; -1 is no zone.
      return this == IPV4
          ? InetAddress.getByAddress(bytes)
          : Inet6Address.getByAddress(null, bytes, -1);
    } catch (UnknownHostException impossible) {
      throw new AssertionError(impossible);
    }
  }

  /** Addresses one after another, as the packed forms take them. */
  public byte[] pack(List<InetAddress> addresses) {
    byte[] packed = new byte[addresses.size() * widthBytes];
    int place = 0;
    for (InetAddress address : addresses) {
      byte[] bytes = address.getAddress();
      if (bytes.length != widthBytes) {
        throw new IllegalArgumentException(address.getHostAddress() + " is not " + this);
      }
      System.arraycopy(bytes, 0, packed, place, widthBytes);
      place += widthBytes;
    }
    return packed;
  }

  /** The reverse of {@link #pack}. */
  public List<InetAddress> unpack(byte[] packed) {
    InetAddress[] addresses = new InetAddress[packed.length / widthBytes];
    for (int index = 0; index < addresses.length; index++) {
      byte[] bytes = new byte[widthBytes];
      System.arraycopy(packed, index * widthBytes, bytes, 0, widthBytes);
      addresses[index] = address(bytes);
    }
    return List.of(addresses);
  }

  /** Whether an object of this family can have it. One with a zone (fe80::1%eth0) is in none. */
  boolean has(InetAddress address) {
    return of(address) == this && !hasZone(address);
  }

  static boolean hasZone(InetAddress address) {
    return address instanceof Inet6Address ip6
        && (ip6.getScopeId() != 0 || ip6.getScopedInterface() != null);
  }

  /** The address without a name. Throws IllegalArgumentException on a zone. */
  static InetAddress plain(InetAddress address) {
    if (hasZone(address)) {
      throw new IllegalArgumentException(address.getHostAddress() + " has a zone; wanted none");
    }
    return of(address).address(address.getAddress());
  }
}

package io.vendor.berth.core;

import io.vendor.berth.core.Abi.Status;
import java.net.InetAddress;
import java.util.List;
import java.util.Optional;

/** Arithmetic with prefixes, in the core's own words. */
public final class Prefixes {
  private final Exchange exchange;

  Prefixes(Exchange exchange) {
    this.exchange = exchange;
  }

  /** The lowest address of the prefix. */
  public InetAddress first(Prefix prefix) {
    int version = give(prefix).version();
    exchange.check("prefix_first", exchange.abi.prefixFirst(version, prefix.length()));
    return exchange.readAddress(prefix.family());
  }

  /** The highest address of the prefix. */
  public InetAddress last(Prefix prefix) {
    int version = give(prefix).version();
    exchange.check("prefix_last", exchange.abi.prefixLast(version, prefix.length()));
    return exchange.readAddress(prefix.family());
  }

  /** The network mask of that length. Throws CoreException on a length that the family has not. */
  public InetAddress mask(Family family, int length) {
    exchange.check("prefix_mask", exchange.abi.prefixMask(family.version(), length));
    return exchange.readAddress(family);
  }

  /** The prefix of the same length after this one; none after the last. */
  public Optional<Prefix> next(Prefix prefix) {
    int version = give(prefix).version();
    int result = exchange.abi.prefixNext(version, prefix.length());
    return prefixUnless("prefix_next", result, Status.NONE, prefix.family(), prefix.length());
  }

  /**
   * One part of the prefix when it is split into prefixes of a greater length; none where there are
   * fewer parts. Throws CoreException on a length below the prefix's own, or above the family's.
   *
   * @param index from 0; all 32 bits count
   */
  public Optional<Prefix> part(Prefix prefix, int partLength, int index) {
    int version = give(prefix).version();
    int result = exchange.abi.prefixPart(version, prefix.length(), partLength, index);
    return prefixUnless("prefix_part", result, Status.OUTSIDE, prefix.family(), partLength);
  }

  /** The longest prefix that holds both addresses. Throws CoreException on two families. */
  public Prefix common(InetAddress one, InetAddress other) {
    Family family = Family.of(one);
    if (Family.of(other) != family) throw new CoreException("prefix_common", Status.BAD_FAMILY);
    AddressRange both = new AddressRange(one, other);
    exchange.write(family.pack(List.of(both.first(), both.last())));
    int length = exchange.check("prefix_common", exchange.abi.prefixCommon(family.version()));
    return new Prefix(first(new Prefix(both.first(), length)), length);
  }

  private Family give(Prefix prefix) {
    exchange.write(prefix.address().getAddress());
    return prefix.family();
  }

  private Optional<Prefix> prefixUnless(
      String operation, int result, Status absent, Family family, int length) {
    if (exchange.check(operation, result, absent) == absent.code()) return Optional.empty();
    return Optional.of(new Prefix(exchange.readAddress(family), length));
  }
}

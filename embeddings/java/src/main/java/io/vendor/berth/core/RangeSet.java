package io.vendor.berth.core;

import io.vendor.berth.core.Abi.Status;
import java.math.BigInteger;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.stream.IntStream;

/** A set of addresses of one family. It never changes, and lives in a {@link Core} until closed. */
public final class RangeSet implements AutoCloseable {
  /** Bytes of a number of addresses, which may be 2^128. */
  static final int SIZE_BYTES = 17;

  private final Exchange exchange;
  private final Family family;
  private int handle;

  private RangeSet(Exchange exchange, Family family, int handle) {
    this.exchange = exchange;
    this.family = family;
    this.handle = handle;
  }

  static RangeSet ofRanges(Exchange exchange, Family family, Collection<AddressRange> ranges) {
    byte[] input = new byte[ranges.size() * 2 * family.widthBytes()];
    int place = 0;
    for (AddressRange range : ranges) {
      place = put(input, place, "set_create", family, range.first());
      place = put(input, place, "set_create", family, range.last());
    }
    exchange.write(input);
    int handle = exchange.abi.setCreate(family.version(), ranges.size());
    return adopt(exchange, family, "set_create", handle);
  }

  static RangeSet ofPrefixes(Exchange exchange, Family family, Collection<Prefix> prefixes) {
    byte[] input = new byte[prefixes.size() * (family.widthBytes() + 1)];
    int place = 0;
    for (Prefix prefix : prefixes) {
      place = put(input, place, "set_create_prefixes", family, prefix.address());
      input[place++] = (byte) prefix.length();
    }
    exchange.write(input);
    int handle = exchange.abi.setCreatePrefixes(family.version(), prefixes.size());
    return adopt(exchange, family, "set_create_prefixes", handle);
  }

  /** The set that an operation has made, or its refusal. */
  static RangeSet adopt(Exchange exchange, Family family, String operation, int handle) {
    return new RangeSet(exchange, family, exchange.check(operation, handle));
  }

  public Family family() {
    return family;
  }

  /** What the raw calls name this set by; 0 once it is closed. */
  public int handle() {
    return handle;
  }

  /** The addresses of either set. */
  public RangeSet union(RangeSet other) {
    return derive("set_union", exchange.abi.setUnion(handle, peer(other)));
  }

  /** The addresses of both sets. */
  public RangeSet intersect(RangeSet other) {
    return derive("set_intersect", exchange.abi.setIntersect(handle, peer(other)));
  }

  /** The addresses of this set that are not in the other. */
  public RangeSet subtract(RangeSet other) {
    return derive("set_subtract", exchange.abi.setSubtract(handle, peer(other)));
  }

  /** Whether the sets share an address. */
  public boolean overlaps(RangeSet other) {
    int result = exchange.abi.setOverlaps(handle, peer(other));
    return exchange.check("set_overlaps", result) == 1;
  }

  /** Whether every address of the other set is in this one. */
  public boolean includes(RangeSet other) {
    int result = exchange.abi.setIncludes(handle, peer(other));
    return exchange.check("set_includes", result) == 1;
  }

  /** Whether the address is in the set. One of another family, or with a zone, is not. */
  public boolean contains(InetAddress address) {
    if (!family.has(address)) return false;
    exchange.write(address.getAddress());
    return exchange.check("set_contains", exchange.abi.setContains(handle)) == 1;
  }

  /** {@link #contains} for each address. */
  public boolean[] containsMany(List<InetAddress> addresses) {
    String operation = "set_contains_many";
    return flags(
        exchange.outcomesOf(operation, exchange.abi::setContainsMany, handle, family, addresses));
  }

  /** {@link #contains} for each address, given as 4 or 16 big-endian bytes: 1 or 0 for each. */
  public byte[] containsPacked(byte[] addresses) {
    String operation = "set_contains_many";
    return exchange.whichOf(operation, exchange.abi::setContainsMany, handle, family, addresses);
  }

  /** The number of {@link #ranges}. */
  public int rangeCount() {
    return exchange.check("set_count", exchange.abi.setCount(handle));
  }

  /** The number of addresses, up to 2^128. */
  public BigInteger size() {
    int length = exchange.check("set_size", exchange.abi.setSize(handle));
    return new BigInteger(1, exchange.read(length));
  }

  /** The fewest ranges that make up the set, ascending. */
  public List<AddressRange> ranges() {
    int count = exchange.check("set_ranges", exchange.abi.setRanges(handle));
    int width = family.widthBytes();
    byte[] output = exchange.read(count * 2 * width);
    return IntStream.range(0, count)
        .mapToObj(
            index ->
                new AddressRange(
                    addressAt(output, 2 * index * width),
                    addressAt(output, (2 * index + 1) * width)))
        .toList();
  }

  /** The fewest prefixes that cover exactly the set, ascending. */
  public List<Prefix> prefixes() {
    int count = exchange.check("set_prefixes", exchange.abi.setPrefixes(handle));
    int item = family.widthBytes() + 1;
    byte[] output = exchange.read(count * item);
    return IntStream.range(0, count)
        .mapToObj(
            index ->
                new Prefix(addressAt(output, index * item), output[(index + 1) * item - 1] & 0xff))
        .toList();
  }

  /** The same set in a copy of the instance, {@link Core#copy}. */
  public RangeSet in(Core copy) {
    return new RangeSet(copy.exchange(), family, handle);
  }

  /** Gives the memory back. Every later use is a CoreException, a second close is nothing. */
  @Override
  public void close() {
    if (handle == 0) return;
    int ended = handle;
    handle = 0;
    exchange.check("drop", exchange.abi.drop(ended));
  }

  /** The handle of a set that must live in this instance: it means nothing in another. */
  static int handleIn(Exchange exchange, RangeSet set) {
    if (set.exchange != exchange) {
      throw new IllegalArgumentException("The set lives in another core");
    }
    return set.handle;
  }

  static boolean[] flags(byte[] outcomes) {
    boolean[] flags = new boolean[outcomes.length];
    for (int index = 0; index < flags.length; index++) flags[index] = outcomes[index] == 1;
    return flags;
  }

  private static int put(
      byte[] input, int place, String operation, Family family, InetAddress address) {
    if (Family.of(address) != family) throw new CoreException(operation, Status.BAD_FAMILY);
    System.arraycopy(address.getAddress(), 0, input, place, family.widthBytes());
    return place + family.widthBytes();
  }

  private InetAddress addressAt(byte[] output, int place) {
    return family.address(Arrays.copyOfRange(output, place, place + family.widthBytes()));
  }

  private int peer(RangeSet other) {
    return handleIn(exchange, other);
  }

  private RangeSet derive(String operation, int derived) {
    return adopt(exchange, family, operation, derived);
  }
}

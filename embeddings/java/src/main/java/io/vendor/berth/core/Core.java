package io.vendor.berth.core;

import com.dylibso.chicory.runtime.Instance;
import com.dylibso.chicory.runtime.Memory;
import io.vendor.berth.core.Raw.*;
import io.vendor.berth.core.compiled.Compiled;
import java.math.BigInteger;
import java.net.*;
import java.nio.*;
import java.util.*;
import java.util.stream.*;

/**
 * An allocator of IP addresses: one instance of Berth's core, in which pools and sets live until
 * they are closed. It is one thread's. Misuse, ceilings and refused snapshots are a {@link
 * CoreException}, after which nothing has changed; none, taken and outside are results. An
 * address of another family, or with a zone, is in no pool and no set. What is not here is a call
 * of {@link #raw} with a handle.
 */
public final class Core {
  public final Wasm raw = new Wasm();

  public Core() {
    raw.exchange(64); // room for what operations on addresses write
  }

  /** A pool with nothing used. The ranges may overlap; masked addresses are never found. */
  public Pool pool(List<Range> ranges, List<Range> masks) {
    Optional<Range> one = Stream.of(ranges, masks).flatMap(List::stream).findFirst();
    Family family = one.map(range -> Family.of(range.first)).orElse(Family.IPV4);
    try (RangeSet shape = rangeSet(family, ranges);
        RangeSet masked = rangeSet(family, masks)) {
      return new Pool(this, family, raw.poolCreate(shape.handle, masked.handle));
    }
  }

  /** A set of ranges of one family, which may overlap. */
  public RangeSet rangeSet(Family family, List<Range> ranges) {
    raw.write(pack("set_create", family, ranges));
    return new RangeSet(this, family, raw.setCreate(family.version, ranges.size()));
  }

  public Range rangeOf(Prefix prefix) {
    Family family = give(prefix);
    raw.prefixFirst(family.version, prefix.length);
    InetAddress first = readAddress(family);
    give(prefix);
    raw.prefixLast(family.version, prefix.length);
    return new Range(first, readAddress(family));
  }

  public InetAddress prefixMask(Family family, int length) {
    raw.prefixMask(family.version, length);
    return readAddress(family);
  }

  /** The prefix of the same length after this one; none after the last. */
  public Optional<Prefix> prefixNext(Prefix prefix) {
    Family family = give(prefix);
    return raw.find(Status.NONE, "prefix_next", family.version, prefix.length)
        .map(found -> new Prefix(readAddress(family), prefix.length));
  }

  /** Part {@code index}, from 0, of the prefix split into prefixes of a length. */
  public Optional<Prefix> prefixPart(Prefix prefix, int length, int index) {
    Family family = give(prefix);
    return raw.find(Status.OUTSIDE, "prefix_part", family.version, prefix.length, length, index)
        .map(found -> new Prefix(readAddress(family), length));
  }

  /** The longest prefix that holds both addresses. */
  public Prefix prefixCommon(InetAddress one, InetAddress other) {
    Family family = Family.of(one);
    raw.write(pack("prefix_common", family, List.of(new Range(one, other))));
    int length = raw.prefixCommon(family.version);
    return new Prefix(rangeOf(new Prefix(one, length)).first, length);
  }

  private InetAddress readAddress(Family family) {
    return family.address(raw.read(family.width), 0);
  }

  private int ask(Family family, int handle, String operation, InetAddress address) {
    if (!family.has(address)) return Status.OUTSIDE.code;
    raw.write(address.getAddress());
    return raw.find(Status.OUTSIDE, operation, handle).orElse(Status.OUTSIDE.code);
  }

  private Family give(Prefix prefix) {
    raw.write(prefix.address.getAddress());
    return Family.of(prefix.address);
  }

  private static byte[] pack(String operation, Family family, List<Range> ranges) {
    ByteBuffer packed = ByteBuffer.allocate(2 * ranges.size() * family.width);
    for (Range range : ranges) {
      boolean isWhole = family.has(range.first) && family.has(range.last);
      if (!isWhole) throw new CoreException(operation, Status.BAD_FAMILY);
      packed.put(range.first.getAddress()).put(range.last.getAddress());
    }
    return packed.array();
  }

  /** Addresses of one family. Operations with another set give a new one. */
  public record RangeSet(Core core, Family family, int handle) implements AutoCloseable {
    @Override
    public void close() {
      core.raw.drop(handle);
    }

    public RangeSet union(RangeSet other) {
      return new RangeSet(core, family, core.raw.setUnion(handle, peer(other)));
    }

    public RangeSet intersect(RangeSet other) {
      return new RangeSet(core, family, core.raw.setIntersect(handle, peer(other)));
    }

    public RangeSet subtract(RangeSet other) {
      return new RangeSet(core, family, core.raw.setSubtract(handle, peer(other)));
    }

    public boolean overlaps(RangeSet other) {
      return core.raw.setOverlaps(handle, peer(other)) == 1;
    }

    /** Whether every address of the other set is in this one. */
    public boolean includes(RangeSet other) {
      return core.raw.setIncludes(handle, peer(other)) == 1;
    }

    public boolean contains(InetAddress address) {
      return core.ask(family, handle, "set_contains", address) == 1;
    }

    /** The number of addresses, up to 2^128. */
    public BigInteger size() {
      return new BigInteger(1, core.raw.read(core.raw.setSize(handle)));
    }

    /** The fewest ranges, ascending; no two touch. */
    public List<Range> ranges() {
      return items(core.raw.setRanges(handle), 2 * family.width)
          .map(item -> new Range(family.address(item, 0), family.address(item, family.width)))
          .toList();
    }

    /** The fewest prefixes that cover exactly the set, ascending. */
    public List<Prefix> prefixes() {
      return items(core.raw.setPrefixes(handle), family.width + 1)
          .map(item -> new Prefix(family.address(item, 0), Byte.toUnsignedInt(item[family.width])))
          .toList();
    }

    private Stream<byte[]> items(int count, int length) {
      byte[] packed = core.raw.read(count * length);
      return IntStream.range(0, count)
          .mapToObj(index -> Arrays.copyOfRange(packed, index * length, (index + 1) * length));
    }

    private int peer(RangeSet other) {
      return other.core == core ? other.handle : 0; // a handle means nothing in another core
    }
  }

  /** Addresses of one family, each used or not, masked or not. */
  public record Pool(Core core, Family family, int handle) implements AutoCloseable {
    @Override
    public void close() {
      core.raw.drop(handle);
    }

    /** Gives the pool another shape. Used marks outside it are forgotten. */
    public void edit(List<Range> ranges, List<Range> masks) {
      try (RangeSet shape = core.rangeSet(family, ranges);
          RangeSet masked = core.rangeSet(family, masks)) {
        core.raw.poolEdit(handle, shape.handle, masked.handle);
      }
    }

    /** Claims the next address, if one is free. The seed, of 32 bits, is for HASHED. */
    public Optional<InetAddress> allocate(Policy policy, int seed) {
      return found("pool_allocate", handle, policy.number, seed);
    }

    /** The first free address from ordinal {@code seed} modulo the window on, wrapping. */
    public Optional<InetAddress> findFree(int seed) {
      return found("pool_find", handle, seed);
    }

    /** The first free address, beyond the window too, from a seed of 128 bits on. */
    public Optional<InetAddress> findFreeWide(long high, long low) {
      core.raw.write(ByteBuffer.allocate(16).putLong(high).putLong(low).array());
      return core.raw.find(Status.NONE, "pool_find_wide", handle)
          .map(found -> core.readAddress(family));
    }

    /** Whether the address is in the ranges and not masked. */
    public boolean contains(InetAddress address) {
      return core.ask(family, handle, "pool_contains", address) == 1;
    }

    public boolean test(InetAddress address) {
      return core.ask(family, handle, "pool_test", address) == 1;
    }

    /** Marks the address used; a masked one too. */
    public Claim claim(InetAddress address) {
      int result = core.ask(family, handle, "pool_claim", address);
      return result < 0 ? Claim.OUTSIDE : result == 0 ? Claim.TAKEN : Claim.CLAIMED;
    }

    public Release release(InetAddress address) {
      int result = core.ask(family, handle, "pool_release", address);
      return result < 0 ? Release.OUTSIDE : result == 0 ? Release.FREE : Release.RELEASED;
    }

    /** From now on remembers the order of releases: for LEAST_RECENTLY_FREED. */
    public void trackFreed() {
      core.raw.poolTrackFreed(handle);
    }

    public Counts counts() {
      byte[] output = core.raw.read(core.raw.poolCounts(handle));
      ByteBuffer view = ByteBuffer.wrap(output).order(ByteOrder.LITTLE_ENDIAN);
      BigInteger masked = new BigInteger(1, output, CountsAt.MASKED, 17);
      BigInteger total = new BigInteger(1, output, CountsAt.SIZE, 17).subtract(masked);
      int used = view.getInt(CountsAt.USED);
      int usedMasked = view.getInt(CountsAt.USED_MASKED);
      BigInteger free = total.subtract(BigInteger.valueOf(used - usedMasked));
      int window = view.getInt(CountsAt.WINDOW);
      return new Counts(total, free, used, usedMasked, window, view.getInt(CountsAt.BEYOND));
    }

    /** What is used, masked or not. */
    public RangeSet used() {
      return new RangeSet(core, family, core.raw.poolUsed(handle));
    }

    /** What is used, for {@link #load}. Masks and the order of releases are not in it. */
    public byte[] save() {
      return core.raw.read(core.raw.poolSave(handle));
    }

    /** Replaces what is used by what a pool with the same ranges saved. */
    public void load(byte[] snapshot) {
      core.raw.write(snapshot);
      core.raw.poolLoad(handle, snapshot.length);
    }

    private Optional<InetAddress> found(String operation, int... args) {
      return core.raw.find(Status.NONE, operation, args).map(this::addressAt);
    }

    private InetAddress addressAt(int ordinal) {
      core.raw.poolAddress(handle, ordinal);
      return core.readAddress(family);
    }
  }

  public enum Claim { CLAIMED, TAKEN, OUTSIDE }
  public enum Release { RELEASED, FREE, OUTSIDE }

  public enum Family {
    IPV4(4, 4),
    IPV6(6, 16);

    final int version;
    final int width;

    Family(int version, int width) {
      this.version = version;
      this.width = width;
    }

    public static Family of(InetAddress address) {
      return address instanceof Inet4Address ? IPV4 : IPV6;
    }

    /** The address in big-endian bytes. Unlike Java's own, an IPv4-mapped one stays IPv6. */
    public InetAddress address(byte[] bytes, int start) {
      try {
        byte[] own = Arrays.copyOfRange(bytes, start, start + width);
        if (this == IPV4) return InetAddress.getByAddress(own);
        return Inet6Address.getByAddress(null, own, -1);
      } catch (UnknownHostException impossible) {
        throw new AssertionError(impossible);
      }
    }

    private boolean has(InetAddress address) {
      return of(address) == this && address.getHostAddress().indexOf('%') < 0;
    }
  }

  /** The addresses from first to last, both included. */
  public record Range(InetAddress first, InetAddress last) {
    @Override
    public String toString() {
      return first.getHostAddress() + "-" + last.getHostAddress();
    }
  }

  /** An address and the number of its leading bits that count. */
  public record Prefix(InetAddress address, int length) {
    @Override
    public String toString() {
      return address.getHostAddress() + "/" + length;
    }
  }

  /** Addresses of a pool. Every order finds those in the window; total and free are not masked. */
  public record Counts(
      BigInteger total, BigInteger free, int used, int usedMasked, int window, int beyond) {}

  /** The exports of an instance in which nothing has been called, and its memory. */
  public static final class Wasm extends Raw {
    private final Instance instance =
        Instance.builder(Compiled.load()).withMachineFactory(Compiled::create).build();
    private boolean isRunning;

    @Override
    int invoke(String name, long... args) {
      // After an interrupt, or a full heap, nothing is known about the memory.
      if (isRunning) throw new IllegalStateException("A call of this core has ended half way");
      isRunning = true;
      int result = (int) instance.export(name).apply(args)[0];
      isRunning = false;
      if (result < 0) throw new CoreException(name, Status.of(result));
      return result;
    }

    @Override
    public Memory memory() {
      return instance.memory();
    }
  }
}

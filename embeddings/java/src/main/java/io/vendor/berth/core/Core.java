package io.vendor.berth.core;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.stream.Stream;

/**
 * One instance of the allocator, in which sets and pools live. It is one thread's: whoever shares
 * it locks around every use of it, and of what lives in it. Two instances have nothing in common.
 *
 * <p>Close sets and pools that are no longer needed: the instance keeps their memory until then.
 * The garbage collector takes an instance as a whole, so closing it is only good manners.
 */
public final class Core implements AutoCloseable {
  private Exchange exchange;

  private Core(Exchange exchange) {
    this.exchange = exchange;
  }

  /** A fresh instance of the embedded core, compiled to bytecode when this library was built. */
  public static Core open() {
    return new Core(Exchange.open(WasmInstance.compiled()));
  }

  /**
   * A fresh instance of another build of the core. It is interpreted, hundreds of times slower, and
   * an interrupt of the thread may end a call half way: the instance then refuses all others.
   * Throws IllegalArgumentException when the bytes are no core of this ABI.
   */
  public static Core open(byte[] wasm) {
    return new Core(Exchange.open(WasmInstance.interpreted(wasm)));
  }

  /** The raw calls of a fresh instance, untouched: {@link #open} asks for an exchange buffer. */
  public static Abi openRaw() {
    return new Abi(WasmInstance.compiled());
  }

  /** The bytes of the embedded core. */
  public static byte[] wasm() {
    try (InputStream stream = Core.class.getResourceAsStream("berth-core.wasm")) {
      return stream.readAllBytes();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * An equal instance; the two go separate ways from here. {@link Pool#in} and {@link RangeSet#in}
   * give the same pool and set in it.
   */
  public Core copy() {
    return new Core(exchange().copy());
  }

  /** A pool with nothing used. The sets are copied. Masked addresses are never found. */
  public Pool createPool(RangeSet ranges, RangeSet masks) {
    return Pool.create(exchange(), ranges, masks);
  }

  /**
   * The same from ranges, which may overlap and stand in any order. Without any range and mask the
   * pool is one of IPv4. Throws CoreException on ranges of two families.
   */
  public Pool createPool(Collection<AddressRange> ranges, Collection<AddressRange> masks) {
    Family family =
        Stream.concat(ranges.stream(), masks.stream())
            .findFirst()
            .map(AddressRange::family)
            .orElse(Family.IPV4);
    try (RangeSet shape = rangeSet(family, ranges);
        RangeSet masked = rangeSet(family, masks)) {
      return createPool(shape, masked);
    }
  }

  /**
   * A set of ranges, which may overlap and stand in any order. Throws CoreException on ranges of
   * the other family.
   */
  public RangeSet rangeSet(Family family, Collection<AddressRange> ranges) {
    return RangeSet.ofRanges(exchange(), family, ranges);
  }

  /**
   * A set of prefixes, which may overlap and stand in any order. Throws CoreException on prefixes
   * of the other family.
   */
  public RangeSet prefixSet(Family family, Collection<Prefix> prefixes) {
    return RangeSet.ofPrefixes(exchange(), family, prefixes);
  }

  /** Arithmetic with prefixes. */
  public Prefixes prefixes() {
    return new Prefixes(exchange());
  }

  /** The raw calls, for whoever wants ordinals. */
  public Abi abi() {
    return exchange().abi;
  }

  /** Sets and pools that are not closed. */
  public int liveObjects() {
    return abi().liveObjects();
  }

  /** How much of the memory is in use: bytes. */
  public long stateBytes() {
    return abi().stateBytes();
  }

  /** Lets the instance go. Every later call of this object is an IllegalStateException. */
  @Override
  public void close() {
    exchange = null;
  }

  /** For what is to live in this instance. */
  Exchange exchange() {
    if (exchange == null) throw new IllegalStateException("The core is closed");
    return exchange;
  }
}

package io.vendor.berth.core;

import io.vendor.berth.core.Abi.Policy;
import io.vendor.berth.core.Abi.Status;
import java.math.BigInteger;
import java.net.InetAddress;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * One pool of addresses: which are used, which is free next. It lives in a {@link Core} until it is
 * closed. The packed forms take and give addresses as 4 or 16 big-endian bytes each, without an
 * object per address. Addresses of the other family, or with a zone, are simply not in the pool.
 */
public final class Pool implements AutoCloseable {
  private final Exchange exchange;
  private final Family family;
  private int handle;

  private Pool(Exchange exchange, Family family, int handle) {
    this.exchange = exchange;
    this.family = family;
    this.handle = handle;
  }

  static Pool create(Exchange exchange, RangeSet ranges, RangeSet masks) {
    int shape = RangeSet.handleIn(exchange, ranges);
    int handle = exchange.abi.poolCreate(shape, RangeSet.handleIn(exchange, masks));
    return new Pool(exchange, ranges.family(), exchange.check("pool_create", handle));
  }

  public Family family() {
    return family;
  }

  /** What the raw calls name this pool by; 0 once it is closed. */
  public int handle() {
    return handle;
  }

  /**
   * Gives the pool another shape, of the same family. What is used stays used wherever its address
   * is in the new ranges, else it is forgotten.
   */
  public void edit(RangeSet ranges, RangeSet masks) {
    int shape = RangeSet.handleIn(exchange, ranges);
    int result = exchange.abi.poolEdit(handle, shape, RangeSet.handleIn(exchange, masks));
    exchange.check("pool_edit", result);
  }

  /** The same from ranges, which may overlap and stand in any order. */
  public void edit(Collection<AddressRange> ranges, Collection<AddressRange> masks) {
    try (RangeSet shape = RangeSet.ofRanges(exchange, family, ranges);
        RangeSet masked = RangeSet.ofRanges(exchange, family, masks)) {
      edit(shape, masked);
    }
  }

  /** Takes the next free address in the order of the policy; none when no more are free. */
  public Optional<InetAddress> allocate(Policy policy) {
    return allocate(policy, 0);
  }

  /** The same. {@link Policy#HASHED} starts at the seed, of which all 32 bits count. */
  public Optional<InetAddress> allocate(Policy policy, int seed) {
    return addressOf("pool_allocate", exchange.abi.poolAllocate(handle, policy.number(), seed));
  }

  /** Takes up to so many addresses; fewer when no more are free. */
  public List<InetAddress> allocateMany(int count, Policy policy, int seed) {
    return family.unpack(allocatePacked(count, policy, seed));
  }

  /** {@link #allocateMany}, packed. */
  public byte[] allocatePacked(int count, Policy policy, int seed) {
    int result = exchange.abi.poolAllocateMany(handle, policy.number(), seed, count);
    return exchange.read(exchange.check("pool_allocate_many", result) * family.widthBytes());
  }

  /** The first free address from ordinal {@code seed} modulo the window on. Takes nothing. */
  public Optional<InetAddress> findFree(int seed) {
    return addressOf("pool_find", exchange.abi.poolFind(handle, seed));
  }

  /**
   * Free addresses of the window that follow one another. Takes nothing.
   *
   * @param alignBits the first address is a multiple of 2^alignBits, 0 to 24
   * @param seed the ordinal, modulo the window, to start from; all 32 bits count
   */
  public Optional<AddressRange> findFreeRun(int count, int alignBits, int seed) {
    int ordinal = exchange.abi.poolFindRun(handle, seed, count, alignBits);
    return addressOf("pool_find_run", ordinal)
        .map(first -> new AddressRange(first, requireAddress(ordinal + count - 1)));
  }

  /**
   * The first free address in hashed order over all addresses, those beyond the window too. Takes
   * nothing.
   *
   * @param seed its low 128 bits count
   */
  public Optional<InetAddress> findFreeWide(BigInteger seed) {
    exchange.writeSeed(seed);
    int result = exchange.abi.poolFindWide(handle);
    if (exchange.check("pool_find_wide", result, Status.NONE) < 0) return Optional.empty();
    return Optional.of(exchange.readAddress(family));
  }

  /** Marks an address used. A masked one too: ask {@link #contains} where that matters. */
  public ClaimResult claim(InetAddress address) {
    if (!give(address)) return ClaimResult.OUTSIDE;
    return ClaimResult.of(mark("pool_claim", exchange.abi.poolClaim(handle)));
  }

  /** Marks an address not used. */
  public ReleaseResult release(InetAddress address) {
    if (!give(address)) return ReleaseResult.OUTSIDE;
    return ReleaseResult.of(mark("pool_release", exchange.abi.poolRelease(handle)));
  }

  /** Whether the address is used. */
  public boolean test(InetAddress address) {
    return give(address) && mark("pool_test", exchange.abi.poolTest(handle)) == 1;
  }

  /** Whether the address is in a range and not masked. */
  public boolean contains(InetAddress address) {
    return give(address) && mark("pool_contains", exchange.abi.poolContains(handle)) == 1;
  }

  /** {@link #claim} for each address. */
  public List<ClaimResult> claimMany(List<InetAddress> addresses) {
    return ClaimResult.listOf(
        outcomesOf("pool_claim_many", exchange.abi::poolClaimMany, addresses));
  }

  /** {@link #release} for each address. */
  public List<ReleaseResult> releaseMany(List<InetAddress> addresses) {
    return ReleaseResult.listOf(
        outcomesOf("pool_release_many", exchange.abi::poolReleaseMany, addresses));
  }

  /** {@link #test} for each address. */
  public boolean[] testMany(List<InetAddress> addresses) {
    return RangeSet.flags(outcomesOf("pool_test_many", exchange.abi::poolTestMany, addresses));
  }

  /** {@link #contains} for each address. */
  public boolean[] containsMany(List<InetAddress> addresses) {
    String operation = "pool_contains_many";
    return RangeSet.flags(outcomesOf(operation, exchange.abi::poolContainsMany, addresses));
  }

  /** {@link #claim} for packed addresses, those outside left out: how many are newly marked. */
  public int claimPacked(byte[] addresses) {
    String operation = "pool_claim_many";
    return exchange.run(operation, exchange.abi::poolClaimMany, handle, family, addresses);
  }

  /** {@link #release} for packed addresses, those outside left out: how many were used. */
  public int releasePacked(byte[] addresses) {
    String operation = "pool_release_many";
    return exchange.run(operation, exchange.abi::poolReleaseMany, handle, family, addresses);
  }

  /** {@link #test} for packed addresses: 1 or 0 for each. */
  public byte[] testPacked(byte[] addresses) {
    String operation = "pool_test_many";
    return exchange.whichOf(operation, exchange.abi::poolTestMany, handle, family, addresses);
  }

  /** {@link #contains} for packed addresses: 1 or 0 for each. */
  public byte[] containsPacked(byte[] addresses) {
    String operation = "pool_contains_many";
    return exchange.whichOf(operation, exchange.abi::poolContainsMany, handle, family, addresses);
  }

  /** Marks a range of the window used, all or nothing: TAKEN when one is used or masked. */
  public ClaimResult claimRun(AddressRange range) {
    int first = ordinalOfRun(range);
    if (first < 0) return ClaimResult.OUTSIDE;
    int result = exchange.abi.poolClaimRun(handle, first, range.size().intValue());
    return ClaimResult.of(exchange.check("pool_claim_run", result));
  }

  /** Marks a range not used: how many were; none unless all of it is in the window. */
  public OptionalInt releaseRun(AddressRange range) {
    int first = ordinalOfRun(range);
    if (first < 0) return OptionalInt.empty();
    int result = exchange.abi.poolReleaseRun(handle, first, range.size().intValue());
    return OptionalInt.of(exchange.check("pool_release_run", result));
  }

  public PoolCounts counts() {
    int length = exchange.check("pool_counts", exchange.abi.poolCounts(handle));
    return PoolCounts.read(exchange.read(length));
  }

  /** Free addresses in each block of 4,096 ordinals of the window; the last may be shorter. */
  public int[] freePerBlock() {
    int blocks = exchange.check("pool_blocks", exchange.abi.poolBlocks(handle));
    return PoolCounts.readBlocks(exchange.read(2 * blocks));
  }

  /** What is used, masked or not, as a set that the caller closes. */
  public RangeSet used() {
    return RangeSet.adopt(exchange, family, "pool_used", exchange.abi.poolUsed(handle));
  }

  /** A copy of the ranges, as a set that the caller closes. */
  public RangeSet ranges() {
    return RangeSet.adopt(exchange, family, "pool_ranges", exchange.abi.poolRanges(handle));
  }

  /** A copy of the masks, as far as they lie in the ranges, as a set that the caller closes. */
  public RangeSet masks() {
    return RangeSet.adopt(exchange, family, "pool_masks", exchange.abi.poolMasks(handle));
  }

  /** What is used, and the place of round robin, as bytes for {@link #load}. */
  public byte[] save() {
    return exchange.read(exchange.check("pool_save", exchange.abi.poolSave(handle)));
  }

  /** Replaces what is used by what a snapshot of a pool with the same ranges says. */
  public LoadResult load(byte[] snapshot) {
    exchange.write(snapshot);
    int status = exchange.abi.poolLoad(handle, snapshot.length);
    return LoadResult.of(Status.of(status))
        .orElseThrow(() -> new CoreException("pool_load", Status.of(status)));
  }

  /** From now on remembers the order of releases, for {@link Policy#LEAST_RECENTLY_FREED}. */
  public void trackFreed() {
    exchange.check("pool_track_freed", exchange.abi.poolTrackFreed(handle));
  }

  /** The same pool in a copy of the instance, {@link Core#copy}. */
  public Pool in(Core copy) {
    return new Pool(copy.exchange(), family, handle);
  }

  /** Gives the memory back. Every later use is a CoreException, a second close is nothing. */
  @Override
  public void close() {
    if (handle == 0) return;
    int ended = handle;
    handle = 0;
    exchange.check("drop", exchange.abi.drop(ended));
  }

  private byte[] outcomesOf(String operation, Exchange.Batch batch, List<InetAddress> addresses) {
    return exchange.outcomesOf(operation, batch, handle, family, addresses);
  }

  /** Writes the address where the core reads it; false when the pool cannot have it. */
  private boolean give(InetAddress address) {
    if (!family.has(address)) return false;
    exchange.write(address.getAddress());
    return true;
  }

  /** A result in which "outside" is no failure. */
  private int mark(String operation, int result) {
    return exchange.check(operation, result, Status.OUTSIDE);
  }

  /** The address of an ordinal that an operation found; none when it found none. */
  private Optional<InetAddress> addressOf(String operation, int ordinal) {
    if (exchange.check(operation, ordinal, Status.NONE) < 0) return Optional.empty();
    return Optional.of(requireAddress(ordinal));
  }

  private InetAddress requireAddress(int ordinal) {
    exchange.check("pool_address", exchange.abi.poolAddress(handle, ordinal));
    return exchange.readAddress(family);
  }

  /** The ordinal of an address of the window; below 0 for one that is not in it. */
  private int ordinalOf(InetAddress address) {
    if (!give(address)) return Status.OUTSIDE.code();
    return mark("pool_ordinal", exchange.abi.poolOrdinal(handle));
  }

  /** The first ordinal of a range; below 0 unless all of it is in the window. */
  private int ordinalOfRun(AddressRange range) {
    int first = ordinalOf(range.first());
    int last = ordinalOf(range.last());
    if (first < 0 || last < 0) return Status.OUTSIDE.code();
    // Ordinals go on where addresses leave a gap.
    boolean isWhole = BigInteger.valueOf(last - first + 1).equals(range.size());
    return isWhole ? first : Status.OUTSIDE.code();
  }
}

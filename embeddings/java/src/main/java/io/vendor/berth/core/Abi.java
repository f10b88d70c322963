// Written from assembly/abi.json by the unit tests (UPDATE_VECTORS=1), never by hand.
package io.vendor.berth.core;

import java.util.List;

/**
 * The exports of the core, one method each, for whoever wants ordinals and handles. Values are 32
 * bits as they stand; a result below 0 is a {@link Status}, which nothing here turns into an
 * exception. Input and output pass through the exchange buffer, which any call may move.
 */
public final class Abi {
  /** A core of another major version is refused. */
  public static final int MAJOR = 1;

  /** What a core of this minor version has, later ones have too. */
  public static final int MINOR = 0;

  /** Why the core refused an operation. */
  public enum Status {
    /** Done; for operations without another result. */
    OK(0, "Done; for operations without another result."),

    /** No live object of the wanted kind has this handle. */
    BAD_HANDLE(-1, "No live object of the wanted kind has this handle."),

    /** A family other than 4 and 6, or two objects of different families. */
    BAD_FAMILY(-2, "A family other than 4 and 6, or two objects of different families."),

    /** A range whose first address is above its last. */
    BAD_RANGE(-3, "A range whose first address is above its last."),

    /** A count, length, policy or alignment outside what the operation allows. */
    BAD_ARGUMENT(-4, "A count, length, policy or alignment outside what the operation allows."),

    /**
     * The exchange buffer is shorter than the input that the arguments promise, or than the output.
     */
    SHORT_EXCHANGE(
        -5, "The exchange buffer is shorter than the input that the arguments promise, or than the output."),

    /** Linear memory cannot grow any further. Nothing has changed. */
    NO_MEMORY(-6, "Linear memory cannot grow any further. Nothing has changed."),

    /** A ceiling, below, is reached. Nothing has changed. */
    OVER_CEILING(-7, "A ceiling, below, is reached. Nothing has changed."),

    /** The address or ordinal lies outside the pool's ranges, or window. */
    OUTSIDE(-8, "The address or ordinal lies outside the pool's ranges, or window."),

    /** Nothing of the kind asked for is there. */
    NONE(-9, "Nothing of the kind asked for is there."),

    /** A snapshot that is damaged or cut short. */
    BAD_SNAPSHOT(-10, "A snapshot that is damaged or cut short."),

    /** A snapshot of another version of the format. */
    OTHER_VERSION(-11, "A snapshot of another version of the format."),

    /** A sound snapshot of a pool with other ranges. */
    OTHER_POOL(-12, "A sound snapshot of a pool with other ranges.");

    private final int code;
    private final String text;

    Status(int code, String text) {
      this.code = code;
      this.text = text;
    }

    /** The number that the core gives: 0 or below. */
    public int code() {
      return code;
    }

    /** What it means, as a sentence. */
    public String text() {
      return text;
    }

    /** The status with this number. Throws IllegalArgumentException where there is none. */
    public static Status of(int code) {
      for (Status status : values()) {
        if (status.code == code) return status;
      }
      throw new IllegalArgumentException("There is no status " + code);
    }
  }

  /** In which order free addresses of the window are taken. */
  public enum Policy {
    /** The lowest free ordinal. */
    ASCENDING(0),

    /** The next free ordinal after the last one that this policy took. */
    ROUND_ROBIN(1),

    /**
     * The first free ordinal at or after the argument modulo the window: sticky and spread out when
     * it is a hash.
     */
    HASHED(2),

    /** Ordinals never freed since pool_track_freed, ascending; then those freed longest ago. */
    LEAST_RECENTLY_FREED(3);

    private final int number;

    Policy(int number) {
      this.number = number;
    }

    /** What the raw calls take. */
    public int number() {
      return number;
    }
  }

  /** What one instance holds at most. */
  public static final class Ceiling {
    /**
     * Ordinals in the bitmap of one pool; those beyond are claimed one by one into a sparse set.
     */
    public static final int MAX_WINDOW = 16777216;

    /** Used addresses beyond the window, per pool. */
    public static final int MAX_SPARSE = 1048576;

    /** Ranges in a set; also used runs for pool_used. */
    public static final int MAX_RANGES = 1048576;

    /** Live sets and pools. */
    public static final int MAX_OBJECTS = 65536;

    /** Bytes of the exchange buffer. */
    public static final int MAX_EXCHANGE = 268435456;

    private Ceiling() {}
  }

  /** Where each number stands in the output of {@link #poolCounts}, in bytes from its start. */
  public static final class CountOffset {
    /** As 17 bytes, big-endian: addresses in the ranges. */
    public static final int SIZE = 0;

    /** As 17 bytes, big-endian: of them, masked. */
    public static final int MASKED = 17;

    /** As u32: ordinals in the bitmap. */
    public static final int WINDOW = 36;

    /** As u32: used addresses, masked or not, in the window or beyond. */
    public static final int USED = 40;

    /** As u32: of them, masked. */
    public static final int USED_MASKED = 44;

    /** As u32: used addresses beyond the window. */
    public static final int BEYOND = 48;

    /** As u32: ordinals of the window that are neither used nor masked. */
    public static final int FREE = 52;

    /** As u32: bitmap chunks present, 1,032 bytes each. */
    public static final int CHUNKS = 56;

    /** As u32: entries in the order of release. */
    public static final int RING = 60;

    /** As u64: digest of the ranges, as snapshots bear it. */
    public static final int DIGEST = 64;

    private CountOffset() {}
  }

  /** In the order of the methods, which call them by their place here. */
  static final List<String> EXPORTS =
      List.of(
          "abi_version",
          "exchange",
          "exchange_size",
          "drop",
          "state_bytes",
          "live_objects",
          "prefix_first",
          "prefix_last",
          "prefix_mask",
          "prefix_next",
          "prefix_part",
          "prefix_common",
          "set_create",
          "set_create_prefixes",
          "set_union",
          "set_intersect",
          "set_subtract",
          "set_overlaps",
          "set_includes",
          "set_contains",
          "set_contains_many",
          "set_count",
          "set_size",
          "set_ranges",
          "set_prefixes",
          "pool_create",
          "pool_edit",
          "pool_track_freed",
          "pool_counts",
          "pool_blocks",
          "pool_ranges",
          "pool_masks",
          "pool_used",
          "pool_save",
          "pool_load",
          "pool_contains",
          "pool_test",
          "pool_claim",
          "pool_release",
          "pool_contains_many",
          "pool_test_many",
          "pool_claim_many",
          "pool_release_many",
          "pool_test_at",
          "pool_claim_at",
          "pool_release_at",
          "pool_test_at_many",
          "pool_claim_at_many",
          "pool_release_at_many",
          "pool_claim_run",
          "pool_release_run",
          "pool_address",
          "pool_ordinal",
          "pool_find",
          "pool_allocate",
          "pool_allocate_many",
          "pool_find_run",
          "pool_find_wide");

  private final WasmInstance wasm;

  Abi(WasmInstance wasm) {
    this.wasm = wasm;
  }

  /** A copy of the memory from an address on, such as the one {@link #exchange} gives. */
  public byte[] readMemory(int address, int lengthBytes) {
    return wasm.memory().readBytes(address, lengthBytes);
  }

  /** Writes to the memory at an address, such as the one {@link #exchange} gives. */
  public void writeMemory(int address, byte[] bytes) {
    wasm.memory().write(address, bytes);
  }

  /**
   * {@code abi_version}: The version of this ABI.
   *
   * @return major &lt;&lt; 16 | minor
   */
  public int abiVersion() {
    return wasm.call(0);
  }

  /**
   * {@code exchange}: Makes the exchange buffer at least so long. Its contents survive, it may
   * move.
   *
   * @param bytes least length in bytes; 0 only asks where it is
   * @return address of the buffer; or a status: BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
   */
  public int exchange(int bytes) {
    return wasm.call(1, bytes);
  }

  /**
   * {@code exchange_size}: The length of the exchange buffer.
   *
   * @return bytes, a power of two; 0 before the first exchange()
   */
  public int exchangeSize() {
    return wasm.call(2);
  }

  /**
   * {@code drop}: Ends a set or a pool and gives its memory back.
   *
   * @param handle set or pool handle
   * @return 0; or a status: BAD_HANDLE
   */
  public int drop(int handle) {
    return wasm.call(3, handle);
  }

  /**
   * {@code state_bytes}: How much of the memory, from address 0, is in use. A copy of it in a fresh
   * instance, grown to the same size, is an equal instance.
   *
   * @return bytes
   */
  public int stateBytes() {
    return wasm.call(4);
  }

  /**
   * {@code live_objects}: Sets and pools that are not dropped.
   *
   * @return their number
   */
  public int liveObjects() {
    return wasm.call(5);
  }

  /**
   * {@code prefix_first}: The lowest address of the prefix that holds the address. With a shorter
   * length: the supernet.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * <p>In the exchange buffer after: 1 address.
   *
   * @param family 4 or 6
   * @param length prefix length, 0 to 32 or 128
   * @return 0; or a status: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
   */
  public int prefixFirst(int family, int length) {
    return wasm.call(6, family, length);
  }

  /**
   * {@code prefix_last}: The highest address of the prefix that holds the address.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * <p>In the exchange buffer after: 1 address.
   *
   * @param family 4 or 6
   * @param length prefix length, 0 to 32 or 128
   * @return 0; or a status: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
   */
  public int prefixLast(int family, int length) {
    return wasm.call(7, family, length);
  }

  /**
   * {@code prefix_mask}: The network mask of that length.
   *
   * <p>In the exchange buffer after: 1 address.
   *
   * @param family 4 or 6
   * @param length prefix length, 0 to 32 or 128
   * @return 0; or a status: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
   */
  public int prefixMask(int family, int length) {
    return wasm.call(8, family, length);
  }

  /**
   * {@code prefix_next}: The first address of the prefix after the one that holds the address.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * <p>In the exchange buffer after: 1 address.
   *
   * @param family 4 or 6
   * @param length prefix length, 0 to 32 or 128
   * @return 0; or a status: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, NONE
   */
  public int prefixNext(int family, int length) {
    return wasm.call(9, family, length);
  }

  /**
   * {@code prefix_part}: The first address of one part of the prefix, when it is split into
   * prefixes of a greater length.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * <p>In the exchange buffer after: 1 address.
   *
   * @param family 4 or 6
   * @param length prefix length, 0 to 32 or 128
   * @param partLength length of the parts, at least length
   * @param index all 32 bits count: u32, which part, from 0
   * @return 0; or a status: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, OUTSIDE
   */
  public int prefixPart(int family, int length, int partLength, int index) {
    return wasm.call(10, family, length, partLength, index);
  }

  /**
   * {@code prefix_common}: The longest prefix that holds both addresses.
   *
   * <p>In the exchange buffer before: 2 addresses.
   *
   * @param family 4 or 6
   * @return its length; or a status: BAD_FAMILY, SHORT_EXCHANGE
   */
  public int prefixCommon(int family) {
    return wasm.call(11, family);
  }

  /**
   * {@code set_create}: A set of ranges, which may overlap and stand in any order.
   *
   * <p>In the exchange buffer before: count × (first address, last address), inclusive.
   *
   * @param family 4 or 6
   * @param count number of items in the exchange buffer
   * @return set handle; or a status: BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY,
   *     BAD_RANGE
   */
  public int setCreate(int family, int count) {
    return wasm.call(12, family, count);
  }

  /**
   * {@code set_create_prefixes}: A set of prefixes, which may overlap and stand in any order. Host
   * bits are ignored.
   *
   * <p>In the exchange buffer before: count × (address, length u8).
   *
   * @param family 4 or 6
   * @param count number of items in the exchange buffer
   * @return set handle; or a status: BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY,
   *     BAD_ARGUMENT
   */
  public int setCreatePrefixes(int family, int count) {
    return wasm.call(13, family, count);
  }

  /**
   * {@code set_union}: The addresses of either set.
   *
   * @param a set handle
   * @param b set handle
   * @return set handle; or a status: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
   */
  public int setUnion(int a, int b) {
    return wasm.call(14, a, b);
  }

  /**
   * {@code set_intersect}: The addresses of both sets.
   *
   * @param a set handle
   * @param b set handle
   * @return set handle; or a status: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
   */
  public int setIntersect(int a, int b) {
    return wasm.call(15, a, b);
  }

  /**
   * {@code set_subtract}: The addresses of {@code a} that are not in {@code b}.
   *
   * @param a set handle
   * @param b set handle
   * @return set handle; or a status: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
   */
  public int setSubtract(int a, int b) {
    return wasm.call(16, a, b);
  }

  /**
   * {@code set_overlaps}: Whether the sets share an address.
   *
   * @param a set handle
   * @param b set handle
   * @return 1 or 0; or a status: BAD_HANDLE, BAD_FAMILY
   */
  public int setOverlaps(int a, int b) {
    return wasm.call(17, a, b);
  }

  /**
   * {@code set_includes}: Whether every address of {@code b} is in {@code a}.
   *
   * @param a set handle
   * @param b set handle
   * @return 1 or 0; or a status: BAD_HANDLE, BAD_FAMILY
   */
  public int setIncludes(int a, int b) {
    return wasm.call(18, a, b);
  }

  /**
   * {@code set_contains}: Whether the address is in the set.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * @param set set handle
   * @return 1 or 0; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int setContains(int set) {
    return wasm.call(19, set);
  }

  /**
   * {@code set_contains_many}: Which addresses are in the set.
   *
   * <p>In the exchange buffer before: count addresses.
   *
   * <p>In the exchange buffer after: count × u8, 1 or 0.
   *
   * @param set set handle
   * @param count number of items in the exchange buffer
   * @return how many are in the set; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int setContainsMany(int set, int count) {
    return wasm.call(20, set, count);
  }

  /**
   * {@code set_count}: The fewest ranges that make up the set.
   *
   * @param set set handle
   * @return their number; or a status: BAD_HANDLE
   */
  public int setCount(int set) {
    return wasm.call(21, set);
  }

  /**
   * {@code set_size}: The number of addresses.
   *
   * <p>In the exchange buffer after: 17 bytes, big-endian.
   *
   * @param set set handle
   * @return 17; or a status: BAD_HANDLE, NO_MEMORY
   */
  public int setSize(int set) {
    return wasm.call(22, set);
  }

  /**
   * {@code set_ranges}: The ranges, ascending; no two overlap or touch.
   *
   * <p>In the exchange buffer after: result × (first address, last address).
   *
   * @param set set handle
   * @return number of ranges; or a status: BAD_HANDLE, NO_MEMORY, OVER_CEILING
   */
  public int setRanges(int set) {
    return wasm.call(23, set);
  }

  /**
   * {@code set_prefixes}: The fewest prefixes that cover exactly the set, ascending.
   *
   * <p>In the exchange buffer after: result × (address, length u8).
   *
   * @param set set handle
   * @return number of prefixes; or a status: BAD_HANDLE, NO_MEMORY, OVER_CEILING
   */
  public int setPrefixes(int set) {
    return wasm.call(24, set);
  }

  /**
   * {@code pool_create}: A pool over the ranges with nothing used. The sets are copied. Masks
   * outside the ranges do not matter.
   *
   * @param ranges set handle
   * @param masks set handle, of the same family
   * @return pool handle; or a status: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
   */
  public int poolCreate(int ranges, int masks) {
    return wasm.call(25, ranges, masks);
  }

  /**
   * {@code pool_edit}: Gives the pool another shape. What is used stays used wherever its address
   * is in the new ranges, else it is forgotten. Order of release and round robin go on. On failure
   * nothing changes.
   *
   * @param pool pool handle
   * @param ranges set handle
   * @param masks set handle, of the same family
   * @return 0; or a status: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
   */
  public int poolEdit(int pool, int ranges, int masks) {
    return wasm.call(26, pool, ranges, masks);
  }

  /**
   * {@code pool_track_freed}: From now on remembers the order in which addresses of the window
   * become free.
   *
   * @param pool pool handle
   * @return 0; or a status: BAD_HANDLE, NO_MEMORY
   */
  public int poolTrackFreed(int pool) {
    return wasm.call(27, pool);
  }

  /**
   * {@code pool_counts}: What the pool holds, in numbers.
   *
   * <p>In the exchange buffer after: 72 bytes, below.
   *
   * @param pool pool handle
   * @return 72; or a status: BAD_HANDLE, NO_MEMORY
   */
  public int poolCounts(int pool) {
    return wasm.call(28, pool);
  }

  /**
   * {@code pool_blocks}: Free ordinals of each block of 4,096, the last one perhaps shorter.
   *
   * <p>In the exchange buffer after: result × u16.
   *
   * @param pool pool handle
   * @return number of blocks; or a status: BAD_HANDLE, NO_MEMORY
   */
  public int poolBlocks(int pool) {
    return wasm.call(29, pool);
  }

  /**
   * {@code pool_ranges}: A copy of the pool's ranges.
   *
   * @param pool pool handle
   * @return set handle; or a status: BAD_HANDLE, NO_MEMORY, OVER_CEILING
   */
  public int poolRanges(int pool) {
    return wasm.call(30, pool);
  }

  /**
   * {@code pool_masks}: A copy of the pool's masks, as far as they lie in the ranges.
   *
   * @param pool pool handle
   * @return set handle; or a status: BAD_HANDLE, NO_MEMORY, OVER_CEILING
   */
  public int poolMasks(int pool) {
    return wasm.call(31, pool);
  }

  /**
   * {@code pool_used}: What is used, masked or not.
   *
   * @param pool pool handle
   * @return set handle; or a status: BAD_HANDLE, NO_MEMORY, OVER_CEILING
   */
  public int poolUsed(int pool) {
    return wasm.call(32, pool);
  }

  /**
   * {@code pool_save}: A snapshot of what is used, and of the place of round robin.
   *
   * <p>In the exchange buffer after: result bytes, format below.
   *
   * @param pool pool handle
   * @return length in bytes; or a status: BAD_HANDLE, NO_MEMORY, OVER_CEILING
   */
  public int poolSave(int pool) {
    return wasm.call(33, pool);
  }

  /**
   * {@code pool_load}: Replaces what is used by what a snapshot of a pool with the same ranges
   * says. On failure nothing changes.
   *
   * <p>In the exchange buffer before: the snapshot.
   *
   * @param pool pool handle
   * @param length bytes of the snapshot
   * @return 0; or a status: BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, BAD_SNAPSHOT, OTHER_VERSION,
   *     OTHER_POOL
   */
  public int poolLoad(int pool, int length) {
    return wasm.call(34, pool, length);
  }

  /**
   * {@code pool_contains}: Whether the address is in the ranges and not masked.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * @param pool pool handle
   * @return 1 or 0; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int poolContains(int pool) {
    return wasm.call(35, pool);
  }

  /**
   * {@code pool_test}: Whether the address is used.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * @param pool pool handle
   * @return 1 or 0; or a status: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
   */
  public int poolTest(int pool) {
    return wasm.call(36, pool);
  }

  /**
   * {@code pool_claim}: Marks the address used; a masked one too.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * @param pool pool handle
   * @return 1 newly marked, 0 it was used; or a status: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE,
   *     NO_MEMORY, OVER_CEILING
   */
  public int poolClaim(int pool) {
    return wasm.call(37, pool);
  }

  /**
   * {@code pool_release}: Marks the address not used.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * @param pool pool handle
   * @return 1 it was used, 0 it was not; or a status: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
   */
  public int poolRelease(int pool) {
    return wasm.call(38, pool);
  }

  /**
   * {@code pool_contains_many}: pool_contains for each address. A failure ends the batch; those
   * before it are done.
   *
   * <p>In the exchange buffer before: count addresses.
   *
   * <p>In the exchange buffer after: count × i8: the result for each, or its status; from a failure
   * on, that status.
   *
   * @param pool pool handle
   * @param count number of items in the exchange buffer
   * @return how many gave 1; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int poolContainsMany(int pool, int count) {
    return wasm.call(39, pool, count);
  }

  /**
   * {@code pool_test_many}: pool_test for each address. A failure ends the batch; those before it
   * are done.
   *
   * <p>In the exchange buffer before: count addresses.
   *
   * <p>In the exchange buffer after: count × i8: the result for each, or its status; from a failure
   * on, that status.
   *
   * @param pool pool handle
   * @param count number of items in the exchange buffer
   * @return how many gave 1; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int poolTestMany(int pool, int count) {
    return wasm.call(40, pool, count);
  }

  /**
   * {@code pool_claim_many}: pool_claim for each address. A failure ends the batch; those before it
   * are done.
   *
   * <p>In the exchange buffer before: count addresses.
   *
   * <p>In the exchange buffer after: count × i8: the result for each, or its status; from a failure
   * on, that status.
   *
   * @param pool pool handle
   * @param count number of items in the exchange buffer
   * @return how many gave 1; or a status: BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, OVER_CEILING
   */
  public int poolClaimMany(int pool, int count) {
    return wasm.call(41, pool, count);
  }

  /**
   * {@code pool_release_many}: pool_release for each address. A failure ends the batch; those
   * before it are done.
   *
   * <p>In the exchange buffer before: count addresses.
   *
   * <p>In the exchange buffer after: count × i8: the result for each, or its status; from a failure
   * on, that status.
   *
   * @param pool pool handle
   * @param count number of items in the exchange buffer
   * @return how many gave 1; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int poolReleaseMany(int pool, int count) {
    return wasm.call(42, pool, count);
  }

  /**
   * {@code pool_test_at}: pool_test by ordinal, below the window.
   *
   * @param pool pool handle
   * @param ordinal all 32 bits count: u32
   * @return 1 or 0; or a status: BAD_HANDLE, OUTSIDE
   */
  public int poolTestAt(int pool, int ordinal) {
    return wasm.call(43, pool, ordinal);
  }

  /**
   * {@code pool_claim_at}: pool_claim by ordinal, below the window.
   *
   * @param pool pool handle
   * @param ordinal all 32 bits count: u32
   * @return 1 newly marked, 0 it was used; or a status: BAD_HANDLE, OUTSIDE, NO_MEMORY
   */
  public int poolClaimAt(int pool, int ordinal) {
    return wasm.call(44, pool, ordinal);
  }

  /**
   * {@code pool_release_at}: pool_release by ordinal, below the window.
   *
   * @param pool pool handle
   * @param ordinal all 32 bits count: u32
   * @return 1 it was used, 0 it was not; or a status: BAD_HANDLE, OUTSIDE
   */
  public int poolReleaseAt(int pool, int ordinal) {
    return wasm.call(45, pool, ordinal);
  }

  /**
   * {@code pool_test_at_many}: pool_test_at for each ordinal. A failure ends the batch; those
   * before it are done.
   *
   * <p>In the exchange buffer before: count × u32.
   *
   * <p>In the exchange buffer after: count × i8: the result for each, or its status; from a failure
   * on, that status.
   *
   * @param pool pool handle
   * @param count number of items in the exchange buffer
   * @return how many gave 1; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int poolTestAtMany(int pool, int count) {
    return wasm.call(46, pool, count);
  }

  /**
   * {@code pool_claim_at_many}: pool_claim_at for each ordinal. A failure ends the batch; those
   * before it are done.
   *
   * <p>In the exchange buffer before: count × u32.
   *
   * <p>In the exchange buffer after: count × i8: the result for each, or its status; from a failure
   * on, that status.
   *
   * @param pool pool handle
   * @param count number of items in the exchange buffer
   * @return how many gave 1; or a status: BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY
   */
  public int poolClaimAtMany(int pool, int count) {
    return wasm.call(47, pool, count);
  }

  /**
   * {@code pool_release_at_many}: pool_release_at for each ordinal. A failure ends the batch; those
   * before it are done.
   *
   * <p>In the exchange buffer before: count × u32.
   *
   * <p>In the exchange buffer after: count × i8: the result for each, or its status; from a failure
   * on, that status.
   *
   * @param pool pool handle
   * @param count number of items in the exchange buffer
   * @return how many gave 1; or a status: BAD_HANDLE, SHORT_EXCHANGE
   */
  public int poolReleaseAtMany(int pool, int count) {
    return wasm.call(48, pool, count);
  }

  /**
   * {@code pool_claim_run}: Marks consecutive ordinals used, all or none.
   *
   * @param pool pool handle
   * @param first all 32 bits count: u32 ordinal
   * @param count 1 or more
   * @return 1 done, 0 one of them is not free; or a status: BAD_HANDLE, BAD_ARGUMENT, OUTSIDE,
   *     NO_MEMORY
   */
  public int poolClaimRun(int pool, int first, int count) {
    return wasm.call(49, pool, first, count);
  }

  /**
   * {@code pool_release_run}: Marks consecutive ordinals not used.
   *
   * @param pool pool handle
   * @param first all 32 bits count: u32 ordinal
   * @param count 1 or more
   * @return how many were used; or a status: BAD_HANDLE, BAD_ARGUMENT, OUTSIDE
   */
  public int poolReleaseRun(int pool, int first, int count) {
    return wasm.call(50, pool, first, count);
  }

  /**
   * {@code pool_address}: The address of an ordinal below the window.
   *
   * <p>In the exchange buffer after: 1 address.
   *
   * @param pool pool handle
   * @param ordinal all 32 bits count: u32
   * @return 0; or a status: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
   */
  public int poolAddress(int pool, int ordinal) {
    return wasm.call(51, pool, ordinal);
  }

  /**
   * {@code pool_ordinal}: The ordinal of the address; OUTSIDE for one beyond the window, too.
   *
   * <p>In the exchange buffer before: 1 address.
   *
   * @param pool pool handle
   * @return ordinal; or a status: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
   */
  public int poolOrdinal(int pool) {
    return wasm.call(52, pool);
  }

  /**
   * {@code pool_find}: The first free ordinal at or after {@code start} modulo the window, wrapping
   * once. Marks nothing.
   *
   * @param pool pool handle
   * @param start all 32 bits count: u32
   * @return ordinal; or a status: BAD_HANDLE, NONE
   */
  public int poolFind(int pool, int start) {
    return wasm.call(53, pool, start);
  }

  /**
   * {@code pool_allocate}: Finds a free ordinal by a policy and marks it used.
   *
   * @param pool pool handle
   * @param policy a policy, below
   * @param argument all 32 bits count: u32; HASHED: the seed; else unused
   * @return ordinal; or a status: BAD_HANDLE, BAD_ARGUMENT, NONE, NO_MEMORY
   */
  public int poolAllocate(int pool, int policy, int argument) {
    return wasm.call(54, pool, policy, argument);
  }

  /**
   * {@code pool_allocate_many}: pool_allocate so many times; HASHED goes on after the one before.
   * Fewer when no more are free, or memory is out.
   *
   * <p>In the exchange buffer after: result addresses.
   *
   * @param pool pool handle
   * @param policy a policy, below
   * @param argument all 32 bits count: u32; HASHED: the seed; else unused
   * @param count how many, 0 or more
   * @return how many are allocated; or a status: BAD_HANDLE, BAD_ARGUMENT, NO_MEMORY,
   *     OVER_CEILING
   */
  public int poolAllocateMany(int pool, int policy, int argument, int count) {
    return wasm.call(55, pool, policy, argument, count);
  }

  /**
   * {@code pool_find_run}: The first of {@code count} free ordinals whose addresses follow one
   * another, the first a multiple of 2^align_bits; from {@code start} modulo the window on,
   * wrapping once. Marks nothing.
   *
   * @param pool pool handle
   * @param start all 32 bits count: u32
   * @param count 1 or more
   * @param alignBits 0 to 24
   * @return ordinal; or a status: BAD_HANDLE, BAD_ARGUMENT, NONE
   */
  public int poolFindRun(int pool, int start, int count, int alignBits) {
    return wasm.call(56, pool, start, count, alignBits);
  }

  /**
   * {@code pool_find_wide}: The first free address in hashed order over all ordinals, those beyond
   * the window too. Starts at the seed's low bits, as many as the largest ordinal has, less the
   * size when that is too large; wraps once. Marks nothing.
   *
   * <p>In the exchange buffer before: 16 bytes, big-endian: the seed.
   *
   * <p>In the exchange buffer after: 1 address.
   *
   * @param pool pool handle
   * @return 0; or a status: BAD_HANDLE, SHORT_EXCHANGE, NONE
   */
  public int poolFindWide(int pool) {
    return wasm.call(57, pool);
  }
}

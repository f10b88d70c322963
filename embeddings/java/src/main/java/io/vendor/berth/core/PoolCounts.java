package io.vendor.berth.core;

import io.vendor.berth.core.Abi.CountOffset;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * What a pool holds, in numbers of addresses.
 *
 * @param total in the ranges and not masked
 * @param free of those, not used
 * @param used marked used, masked ones too
 * @param usedMasked of the used ones, masked
 * @param window ordinals that are found in any order, at most 2^24; those beyond only in wide order
 * @param beyond of the used ones, beyond the window
 * @param digest names the ranges: pools with the same take each other's snapshots
 */
public record PoolCounts(
    BigInteger total,
    BigInteger free,
    int used,
    int usedMasked,
    int window,
    int beyond,
    long digest) {

  static PoolCounts read(byte[] output) {
    ByteBuffer view = ByteBuffer.wrap(output).order(ByteOrder.LITTLE_ENDIAN);
    int used = view.getInt(CountOffset.USED);
    int usedMasked = view.getInt(CountOffset.USED_MASKED);
    BigInteger masked = readSize(output, CountOffset.MASKED);
    BigInteger total = readSize(output, CountOffset.SIZE).subtract(masked);
    return new PoolCounts(
        total,
        total.subtract(BigInteger.valueOf(used - usedMasked)),
        used,
        usedMasked,
        view.getInt(CountOffset.WINDOW),
        view.getInt(CountOffset.BEYOND),
        view.getLong(CountOffset.DIGEST));
  }

  /** The output of pool_blocks. */
  static int[] readBlocks(byte[] output) {
    ByteBuffer view = ByteBuffer.wrap(output).order(ByteOrder.LITTLE_ENDIAN);
    int[] free = new int[output.length / 2];
    Arrays.setAll(free, block -> Short.toUnsignedInt(view.getShort(2 * block)));
    return free;
  }

  private static BigInteger readSize(byte[] output, int place) {
    return new BigInteger(1, Arrays.copyOfRange(output, place, place + RangeSet.SIZE_BYTES));
  }
}

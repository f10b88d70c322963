package io.vendor.berth.core;

import java.util.List;
import java.util.stream.IntStream;

/** What became of an address that was to be marked used. */
public enum ClaimResult {
  /** It is newly marked. */
  CLAIMED,
  /** It was used before. */
  TAKEN,
  /** The pool does not have it: of another range or family, or with a zone. */
  OUTSIDE;

  /** From 1, 0 or the status OUTSIDE. */
  static ClaimResult of(int result) {
    return result == 1 ? CLAIMED : result == 0 ? TAKEN : OUTSIDE;
  }

  static List<ClaimResult> listOf(byte[] results) {
    return IntStream.range(0, results.length).mapToObj(index -> of(results[index])).toList();
  }
}

package io.vendor.berth.core;

import java.util.List;
import java.util.stream.IntStream;

/** What became of an address that was to be marked not used. */
public enum ReleaseResult {
  /** It was used, and is not any more. */
  RELEASED,
  /** It was not used. */
  FREE,
  /** The pool does not have it: of another range or family, or with a zone. */
  OUTSIDE;

  /** From 1, 0 or the status OUTSIDE. */
  static ReleaseResult of(int result) {
    return result == 1 ? RELEASED : result == 0 ? FREE : OUTSIDE;
  }

  static List<ReleaseResult> listOf(byte[] results) {
    return IntStream.range(0, results.length).mapToObj(index -> of(results[index])).toList();
  }
}

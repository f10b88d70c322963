package io.vendor.berth.core;

import io.vendor.berth.core.Abi.Status;
import java.util.Arrays;
import java.util.Optional;

/** What became of a snapshot. On all but LOADED the pool is as before. */
public enum LoadResult {
  LOADED(Status.OK),
  /** It is damaged, cut short, or no snapshot. */
  DAMAGED(Status.BAD_SNAPSHOT),
  /** It is of another version of the format. */
  OTHER_VERSION(Status.OTHER_VERSION),
  /** It is sound, but of a pool with other ranges. */
  OTHER_POOL(Status.OTHER_POOL);

  private final Status status;

  LoadResult(Status status) {
    this.status = status;
  }

  /** None for a status that is a failure. */
  static Optional<LoadResult> of(Status status) {
    return Arrays.stream(values()).filter(result -> result.status == status).findFirst();
  }
}

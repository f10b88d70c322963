package io.vendor.berth.core;

import io.vendor.berth.core.Abi.Status;

/** The core refused: misuse, or a ceiling. "Taken", "outside" and "none" are results instead. */
public final class CoreException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String operation;
  private final Status status;

  CoreException(String operation, Status status) {
    super(operation + " refused with " + status + " (" + status.code() + "): " + status.text());
    this.operation = operation;
    this.status = status;
  }

  /** The export of the core, such as {@code pool_create}. */
  public String operation() {
    return operation;
  }

  public Status status() {
    return status;
  }
}

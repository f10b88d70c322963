/**
 * An operation that the core refused, as an error with fields.
 * Thrown by host/core only, for misuse and ceilings; "taken", "outside" and "full" are results, not errors.
 */

/** The status codes of the ABI (assembly/abi.ts) that may reach a caller, with their texts. */
const CORE_STATUS = {
  [-1]: "the object is gone: it was dropped, or never existed",
  [-2]: "the families differ: all addresses of one object are IPv4 or all are IPv6",
  [-3]: "a range ends before it starts",
  [-4]: "an argument is outside what the operation allows",
  [-5]: "the exchange buffer is shorter than the input",
  [-6]: "the core's memory is exhausted (ceiling 2 GiB)",
  [-7]: "a ceiling is reached",
  [-8]: "the address or ordinal is outside the pool",
  [-9]: "there is none",
  [-10]: "the snapshot is damaged or cut short",
  [-11]: "the snapshot is of another format version",
  [-12]: "the snapshot is of a pool with other ranges",
} as const;

/** A refusal of the core: which operation, its status code, and the relevant arguments. */
export class CoreError extends RangeError {
  override readonly name = "CoreError";
  readonly operation: string;
  readonly status: number;
  readonly got: string | undefined;

  constructor(operation: string, status: number, got?: string) {
    const reason = CORE_STATUS[status as keyof typeof CORE_STATUS] ?? "an unknown status";
    super(
      `Core operation "${operation}" refused with status ${status}: ${reason}${got === undefined ? "" : `; got ${got}`}`,
    );
    this.operation = operation;
    this.status = status;
    this.got = got;
  }
}

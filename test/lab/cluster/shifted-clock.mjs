/**
 * Loaded into an agent before anything else: every date is BERTH_LAB_CLOCK_MS later than it is, as on a machine whose
 * clock is wrong. By NODE_OPTIONS, so that its threads have it, too. The monotonic clock is shifted by a time
 * namespace instead.
 * Effects: replaces the global Date.
 */
const shiftMs = Number(process.env.BERTH_LAB_CLOCK_MS);
if (!Number.isInteger(shiftMs))
  throw new Error(`BERTH_LAB_CLOCK_MS is "${process.env.BERTH_LAB_CLOCK_MS}"; want milliseconds`);

const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + shiftMs);
    else super(...args);
  }

  static now() {
    return RealDate.now() + shiftMs;
  }
};

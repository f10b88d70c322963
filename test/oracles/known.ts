/**
 * A test prints a line that begins so, with JSON, when an oracle has noticed a known fault: `npm run oracles` reads it.
 */
export const NOTICED = "noticed: ";

/**
 * The limits of choosing an address, each explained in docs/limits.md.
 * Effects: none.
 */

/** How often one ADD goes on to another address because somebody had the one before. */
export const MAX_CLAIM_ATTEMPTS = 64;

/** A released address is never handed to another pod sooner than this: milliseconds (allocation rules, "Cooling"). */
export const MIN_COOLING_MS = 2_000;

/** Among how many of the longest released addresses a take-over chooses. */
export const TAKE_OVER_CHOICES = 8;

/** Addresses claimed for a NIC that was never attached are freed after this: milliseconds (allocation rule 17). */
export const UNATTACHED_MS = 120_000;

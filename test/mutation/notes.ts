/** Why mutants survive: of a file, those whose original text contains this. */
export const NOTES: readonly { readonly file: string; readonly text: string; readonly note: string }[] = [
  {
    file: "host/ipam/leak.ts",
    text: "observedAtMs !== undefined",
    note: "equivalent: the difference to undefined is NaN, which is no reason to collect; for the compiler",
  },
  {
    file: "host/ipam/pick.ts",
    text: "counts.total - counts.free",
    note: "equivalent: a pool that falls short has no free address",
  },
];

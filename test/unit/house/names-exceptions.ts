/** Names that names.test.ts still allows while they are being replaced. The list only shrinks. */
export const NAME_EXCEPTIONS: readonly string[] = [
  "Asked",
  "NO_INSPECTOR",
  "SETTLED_MS",
  "Sighting",
  "TWIN",
  "TWIN_IPAM",
  "asked",
  "readSettledState",
  "settled",
  "settledFds",
  "settledUs",
  "verdictOf",
];

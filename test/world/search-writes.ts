/** Returns `START => REACHED` of all bad ends of up to four writes: states are told apart by identity. */
export function searchWrites<S>(
  states: readonly S[],
  isAllowed: (from: S, to: S) => boolean,
  isBad: (start: S, reached: S) => boolean,
): string[] {
  const writes = new Map(states.map((from) => [from, states.filter((to) => to !== from && isAllowed(from, to))]));
  return states.flatMap((start) => {
    let reached = new Set([start]);
    for (let write = 0; write < 4; write++)
      reached = new Set([...reached, ...[...reached].flatMap((from) => writes.get(from) ?? [])]);
    return [...reached].filter((each) => each !== start && isBad(start, each)).map((each) => `${start} => ${each}`);
  });
}

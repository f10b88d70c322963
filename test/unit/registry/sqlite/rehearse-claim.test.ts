/** The rehearsal of the registry's thread is a whole claim and a whole release, and over when the function returns. */
import { expect, it } from "vitest";
import { rehearseClaim } from "../../../../host/registry/sqlite/rehearse-claim.ts";

for (const isJournal of [false, true])
  it(`an address is claimed and released ${isJournal ? "in a journal" : "in a registry"}`, async () => {
    const [claimed, released] = await rehearseClaim(isJournal);
    const address = { pool: "rehearsal", containerId: "rehearsal", ip: { family: 4, value: 0xc0000202n } };
    expect(claimed).toMatchObject({ kind: "bound", held: [address] });
    expect(released).toMatchObject([address]);
  });

/** The rehearsal of the registry's thread is a whole claim and a whole release, and over when the function returns. */
import { DatabaseSync } from "node:sqlite";
import { expect, it, vi } from "vitest";
import { rehearseClaim } from "../../../../host/registry/sqlite/rehearse-claim.ts";

for (const isJournal of [false, true])
  it(`an address is claimed and released ${isJournal ? "in a journal" : "in a registry"}`, async () => {
    const [claimed, released] = await rehearseClaim(isJournal);
    const address = { pool: "rehearsal", containerId: "rehearsal", ip: { family: 4, value: 0xc0000202n } };
    expect(claimed).toMatchObject({ kind: "bound", held: [address] });
    expect(released).toMatchObject([address]);
  });

it("a database that cannot be made is a rejection: the thread goes on and opens its registry", async () => {
  const refusal = vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(() => {
    throw new Error("out of memory");
  });
  try {
    const rehearsed = rehearseClaim(false);
    await expect(rehearsed).rejects.toThrow("out of memory");
  } finally {
    refusal.mockRestore();
  }
});

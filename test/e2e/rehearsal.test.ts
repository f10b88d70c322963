/** A built agent rehearses an ADD after its start: both plugins answer, and neither registry, audit log nor metrics know of it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startAgent } from "../lab/agent.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { eventually } from "../lab/netns-world.ts";

const ONE_ADDRESS = ipPool("tiny", "192.0.2.0/24", { ips: ["192.0.2.2"], default: true });

it("nothing is left of the ADD that an agent rehearses", async () => {
  const agent = await startAgent({
    config: { "conf.yaml": CONF, "tiny.yaml": ONE_ADDRESS },
    args: ["--log-level", "debug"],
  });
  try {
    const lines = await eventually(
      async () => agent.stderr().split("\n"),
      (found) => found.some((line) => line.includes("rehearsed") || line.includes("Rehearsed")),
    );
    const rehearsed = JSON.parse(lines.find((line) => /rehearsed/i.test(line)) ?? "{}");
    expect(rehearsed).toMatchObject({ msg: "Rehearsed an ADD", status: 200 });
    // The coordinator answers with what it was given: the address of the rehearsal's own pool, and the NIC.
    expect(JSON.parse(rehearsed.body)).toMatchObject({ ips: [{ address: "192.0.2.2/24", interface: 0 }] });
    expect(await agent.get("/v1/allocations")).toEqual([]);
    expect((await agent.get("/v1/pools"))[0]).toMatchObject({ name: "tiny", used: "0" });
    const written = readdirSync(agent.logDir).map((name) => readFileSync(join(agent.logDir, name), "utf8"));
    expect(written.join("")).not.toContain("rehearsal");
    expect((await agent.request("/metrics")).body).not.toMatch(/command="ADD"/);
  } finally {
    await agent.delete();
  }
});

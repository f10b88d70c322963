/** `berthctl convert host-local` on files of the real host-local, whose format no API server can prove. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runBerthctl } from "../../../../test/lab/berthctl.ts";
import { runPlugin } from "../../../../test/lab/cnitool.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";

const directory = temporaryDirectory("berth-convert-");

it("the addresses that it has given out are in use, and its ranges become pools", async () => {
  const dataDir = join(directory, "networks");
  const ranges = [
    [{ subnet: "10.66.0.0/24", rangeStart: "10.66.0.10", rangeEnd: "10.66.0.19", gateway: "10.66.0.1" }],
    [{ subnet: "fd66::/64" }],
  ];
  const ipam = { type: "host-local", dataDir, ranges, routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }] };
  const network = { cniVersion: "1.0.0", name: "lan", type: "macvlan", master: "eth1", ipam };
  mkdirSync(join(directory, "net.d"));
  writeFileSync(join(directory, "net.d", "10-lan.conf"), JSON.stringify(network));
  const add = (containerId: string) =>
    runPlugin({
      plugin: "host-local",
      command: "ADD",
      containerId,
      ifName: "eth0",
      netns: "/proc/self/ns/net",
      stdin: network,
      // It is in the namespace of the test, which makes no NIC.
      env: { CNI_NETNS_OVERRIDE: "true" },
    });
  const given = [await add("c1"), await add("c2")];
  expect(given.map(({ stderr, exitCode }) => [exitCode, stderr])).toEqual(given.map(() => [0, ""]));
  const addresses: string[] = given.flatMap(({ stdout }) =>
    stdout.ips.map(({ address }: { address: string }) => address.split("/")[0]),
  );
  expect(addresses).toHaveLength(4);

  const { code, out } = await runBerthctl("convert", "host-local", `n1=${directory}`, "-o", "json");
  const { manifests, nodeFiles, used, findings } = JSON.parse(out);
  expect(used.map(({ address, holder }: Record<string, string>) => `${address} ${holder}`).sort()).toEqual(
    addresses.map((address, at) => `${address} container ${at < 2 ? "c1" : "c2"} eth0`).sort(),
  );
  const specs = Object.fromEntries(
    manifests.map(({ metadata, spec }: { metadata: { name: string }; spec: object }) => [metadata.name, spec]),
  );
  expect(specs["lan-v4"]).toEqual({ subnet: "10.66.0.0/24", ips: ["10.66.0.10-10.66.0.19"], gateway: "10.66.0.1" });
  // The first address is the gateway that host-local itself reports.
  expect(specs["lan-v6"]).toEqual({ subnet: "fd66::/64", gateway: given[0]?.stdout.ips[1].gateway });
  expect(JSON.parse(nodeFiles[0].text).ipam).toEqual({
    ...{ type: "berth", default_ipv4_ippool: ["lan-v4"], default_ipv6_ippool: ["lan-v6"] },
  });
  expect([code, findings.map(({ field }: { field: string }) => field)]).toEqual([0, ["ipam.dataDir"]]);
});

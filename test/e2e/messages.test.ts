/** Messages of the built agent and berthctl about faults: the field's line, and the remedy. */
import { expect, it, vi } from "vitest";
import { runCommand } from "../lab/command.ts";
import { CONF, ipPool, podManifest, vendorConf } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";

const check = ({ agent }: NetnsWorld) =>
  runCommand([process.execPath, "dist/berthctl.mjs", "check"], { env: agent.env });

const GOOD = ipPool("blue", "10.6.0.0/24", { default: true });

it("check names the line of the field that is wrong, not that of its document", () =>
  withWorld({ "conf.yaml": CONF, "blue.yaml": GOOD }, async (world) => {
    const lines = [
      "# pools of the lab",
      "apiVersion: ipam.vendor.io/v1",
      "kind: IPPool",
      "metadata:",
      "  name: red",
      "spec:",
      "  subnet: 10.7.0.0/24",
      "  gateway: 10.8.0.1",
      "",
    ];
    await world.agent.write("red.yaml", lines.join("\n"));
    await vi.waitFor(
      async () =>
        expect((await check(world)).stdout).toContain(
          'red.yaml, line 8, IPPool "red": field "spec.gateway": found "10.8.0.1", want an address inside 10.7.0.0/24',
        ),
      { timeout: 10_000 },
    );
  }));

it.each([
  ["an empty list", { ips: [] }],
  ["its gateway as its only address", { ips: ["10.6.0.1"], gateway: "10.6.0.1" }],
])("check warns about a default pool without addresses: %s", (_what, spec) =>
  withWorld(
    { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/24", { default: true, ...spec }) },
    async (world) => {
      const { stdout, exitCode } = await check(world);
      expect(stdout).toContain('IPPool "blue" is a default pool without addresses');
      expect(stdout).toContain("add addresses of 10.6.0.0/24 to spec.ips, or set spec.default: false");
      expect(exitCode).toBe(1);
    },
  ),
);

it("a wrong entry of another project's annotation refuses its own NIC, and no other", () =>
  withWorld(
    {
      "conf.yaml": CONF,
      "blue.yaml": GOOD,
      "pod.yaml": podManifest("shop", "web", {
        "k8s.v1.cni.cncf.io/networks": '[{"name": "lan", "namespace": ""}, {"name": "Lan"}, {"name": "lan"}]',
      }),
    },
    async (world) => {
      for (const ifName of ["eth0", "net1", "net3"])
        expect(await world.add("c1", { pod: "shop/web", ifName })).toHaveLength(1);
      const { msg, code } = await world.refused("ADD", "c1", { pod: "shop/web", ifName: "net2" });
      expect(code).toBe(102);
      expect(msg).toContain('Annotation "k8s.v1.cni.cncf.io/networks": field "[1].name": found "Lan", want a name');
    },
  ));

it("retention by name is refused without a cluster", () =>
  withWorld(
    { "conf.yaml": CONF, "blue.yaml": GOOD, "pod.yaml": podManifest("shop", "web", { retain: "by-name" }) },
    async (world) => {
      const { msg, code } = await world.refused("ADD", "c1", { pod: "shop/web" });
      expect([code, msg]).toEqual([
        102,
        'Annotation "ipam.vendor.io/retain": found by-name, want no such annotation in embedded mode',
      ]);
    },
  ));

it("a refusal for want of a family names the setting that permits it", () =>
  withWorld(
    {
      "conf.yaml": vendorConf({ enableIPv6: true }),
      "blue.yaml": GOOD,
      "pod.yaml": podManifest("shop", "web", { ippool: { ipv4: ["blue"] } }),
    },
    async (world) => {
      const { msg } = await world.refused("ADD", "c1", { pod: "shop/web" });
      expect(msg).toContain('field "ipv6" is required because enableIPv6 is true');
      expect(msg).toContain("name both families, or set allowSingleFamily: true in vendor-conf");
    },
  ));

it("a refusal for want of an enabled family names the setting", () =>
  withWorld({ "conf.yaml": CONF, "blue.yaml": GOOD }, async (world) => {
    const { msg } = await world.refused("ADD", "c1", { ipam: { default_ipv6_ippool: ["six"] } });
    expect(msg).toContain("set enableIPv6: true in vendor-conf");
  }));

/** Messages of the built agent and berthctl about faults: the field's line, and the remedy. */
import { expect, it } from "vitest";
import { runCommand } from "../lab/command.ts";
import { CONF, ipPool, podManifest } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";

const check = ({ agent }: NetnsWorld) =>
  runCommand([process.execPath, "dist/berthctl.mjs", "check"], { env: agent.env });

it("check warns about default pools without addresses: an empty list, its gateway as its only address", () =>
  withWorld(
    {
      "conf.yaml": CONF,
      "blue.yaml": ipPool("blue", "10.6.0.0/24", { default: true, ips: [] }),
      "red.yaml": ipPool("red", "10.7.0.0/24", { default: true, ips: ["10.7.0.1"], gateway: "10.7.0.1" }),
    },
    async (world) => {
      const { stdout, exitCode } = await check(world);
      for (const [name, subnet] of [
        ["blue", "10.6.0.0/24"],
        ["red", "10.7.0.0/24"],
      ]) {
        expect(stdout).toContain(`IPPool "${name}" is a default pool without addresses`);
        expect(stdout).toContain(`add addresses of ${subnet} to spec.ips, or set spec.default: false`);
      }
      expect(exitCode).toBe(1);
    },
  ));

it("a wrong annotation refuses its own NIC, and no other; a refusal names the setting that permits it", () =>
  withWorld(
    {
      "conf.yaml": CONF,
      "blue.yaml": ipPool("blue", "10.6.0.0/24", { default: true }),
      "pods.yaml": [
        podManifest("shop", "web", {
          "k8s.v1.cni.cncf.io/networks": '[{"name": "lan", "namespace": ""}, {"name": "Lan"}, {"name": "lan"}]',
        }),
        podManifest("shop", "by-name", { retain: "by-name" }),
      ].join("---\n"),
    },
    async (world) => {
      for (const ifName of ["eth0", "net1", "net3"])
        expect(await world.add("c1", { pod: "shop/web", ifName })).toHaveLength(1);
      const refused = async (options: object) => {
        const { code, msg } = await world.refused("ADD", "c1", options);
        return [code, msg];
      };
      expect(await refused({ pod: "shop/web", ifName: "net2" })).toEqual([
        102,
        expect.stringContaining('Annotation "k8s.v1.cni.cncf.io/networks": field "[1].name": found "Lan", want a name'),
      ]);
      expect(await refused({ pod: "shop/by-name" })).toEqual([
        102,
        'Annotation "ipam.vendor.io/retain": found by-name, want no such annotation in embedded mode',
      ]);
      const [, msg] = await refused({ ipam: { default_ipv6_ippool: ["six"] } });
      expect(msg).toContain("set enableIPv6: true in vendor-conf");
    },
  ));

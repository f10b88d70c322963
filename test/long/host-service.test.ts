/**
 * The hardened unit in a cluster, by the steps of docs/install-host.md: a control plane in the host's network, a
 * token that the service renews, the watchdog.
 */
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { applyCrds } from "../lab/cluster/crds.ts";
import {
  createPod,
  NAMESPACES,
  NODES,
  namespaceObject,
  nodeObject,
  POOLS,
  poolObject,
} from "../lab/cluster/objects.ts";
import { applyHostAgents, applyRights, createHostToken } from "../lab/cluster/rights.ts";
import { requireCommand } from "../lab/command.ts";
import { type ControlPlane, startControlPlane } from "../lab/control-plane.ts";
import { type Netns, openNetns } from "../lab/netns.ts";
import { bootHost, type Host } from "../lab/systemd-host.ts";

const UNIT = "berth-agent.service";
const ADDRESS = /"10\.6\.0\.\d+\/24"/;

let host: Host;
let netns: Netns;
let plane: ControlPlane;

beforeAll(async () => {
  host = await bootHost();
  const name = `berth-systemd-${process.pid}`;
  await requireCommand(["ip", "netns", "attach", name, String(host.init)]);
  netns = openNetns(name);
  plane = await startControlPlane({ machine: netns, address: "127.0.0.1" });
  await applyCrds(plane.client);
  await applyRights(plane.client);
  await applyHostAgents(plane);
  await plane.client.create(NODES, nodeObject("n1"));
  await plane.client.create(NAMESPACES, namespaceObject("shop"));
  await plane.client.create(POOLS, poolObject({ name: "blue", subnet: "10.6.0.0/24" }));
});
afterAll(async () => {
  await plane?.stop();
  await netns?.delete();
  await host?.stop();
});

it("the service renews its token in its state directory, and serves the cluster's pools", async () => {
  const token = await createHostToken(plane.client, "n1", 3_600);
  writeFileSync(join(host.release, "token"), token);
  copyFileSync(plane.files.ca, join(host.release, "ca.crt"));
  const config = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "berth" },
    contexts: [{ name: "berth", context: { cluster: "berth", user: "berth-agent" } }],
    clusters: [{ name: "berth", cluster: { server: plane.url, "certificate-authority": "/srv/release/ca.crt" } }],
    users: [{ name: "berth-agent", user: { tokenFile: "/var/lib/berth/token" } }],
  };
  writeFileSync(join(host.release, "kubeconfig"), JSON.stringify(config));
  await host.sh(`
    cd /srv/release
    install -D -m 0600 kubeconfig /etc/berth/kubeconfig
    install -D -m 0600 token /var/lib/berth/token
    rm /etc/berth/agent.env
    hostname n1
    ./install.sh --kubeconfig /etc/berth/kubeconfig --renew-token`);
  const probe = () => host.run("/opt/cni/bin/berth", "--probe", "ready");
  await expect.poll(async () => (await probe()).exitCode, { timeout: 20_000 }).toBe(0);
  expect(await host.require("cat", "/var/lib/berth/token")).not.toContain(token);
  expect(await host.require("stat", "--format=%a %U", "/var/lib/berth/token", "/var/lib/berth")).toBe(
    "600 root\n700 root\n",
  );
  const pod = await createPod(plane.client, { name: "web-0", node: "n1" });
  expect(await host.add("web-0", pod.uid)).toMatch(ADDRESS);
  expect(await host.show(UNIT, "ProtectSystem")).toBe("strict");
});

it("the watchdog ends an agent that hangs, and the next one serves", async () => {
  const pid = await host.show(UNIT, "MainPID");
  await host.signal(UNIT, "STOP");
  const startMs = performance.now();
  await expect.poll(() => host.show(UNIT, "NRestarts"), { timeout: 60_000, interval: 500 }).toBe("1");
  const hungMs = performance.now() - startMs;
  // Its last sign of life came at most ten seconds before.
  expect(hungMs).toBeGreaterThan(15_000);
  const pod = await createPod(plane.client, { name: "web-1", node: "n1" });
  expect(await host.add("web-1", pod.uid)).toMatch(ADDRESS);
  expect(await host.show(UNIT, "MainPID")).not.toBe(pid);
  console.log(`host-service: an agent that hangs is replaced after ${Math.round(hungMs / 1_000)} s`);
});

/** The control plane of the lab by itself, on loopback: its objects, its errors, and that nothing of it stays. */
import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { requireCommand } from "../../lab/command.ts";
import { startControlPlane } from "../../lab/control-plane.ts";
import { createNetns } from "../../lab/netns.ts";
import { eventually } from "../../lab/waiting.ts";

const NAMESPACES = "/api/v1/namespaces";

it("objects are made, changed, listed and deleted; refusals say why; stopping leaves nothing", async () => {
  const plane = await startControlPlane();
  try {
    const made = await plane.client.create(NAMESPACES, { metadata: { name: "shop" } });
    expect(made).toMatchObject({ kind: "Namespace", metadata: { name: "shop", uid: expect.any(String) } });
    await plane.client.patch(`${NAMESPACES}/shop`, { metadata: { labels: { tier: "front" } } });
    const { items } = await plane.client.get(`${NAMESPACES}?labelSelector=tier%3Dfront`);
    expect(items).toHaveLength(1);
    const taken = { name: "KubeError", status: 409, reason: "AlreadyExists" };
    await expect(plane.client.create(NAMESPACES, { metadata: { name: "shop" } })).rejects.toMatchObject(taken);
    const nodes = "/api/v1/nodes";
    await plane.client.create(nodes, { metadata: { name: "n1" } });
    await plane.client.delete(`${nodes}/n1`);
    await expect(plane.client.get(`${nodes}/n1`)).rejects.toMatchObject({ status: 404, reason: "NotFound" });
    expect((await plane.client.get("/version")).gitVersion).toBe("v1.34.4");
  } finally {
    await plane.stop();
  }
  expect(existsSync(plane.kubeconfig)).toBe(false);
  const left = await eventually(
    async () => plane.pids.filter((pid) => existsSync(`/proc/${pid}/cmdline`)),
    (pids) => pids.length === 0,
  );
  expect(left).toEqual([]);
});

it("one that cannot start says so in its own words", async () => {
  const machine = await createNetns(`cp-${process.pid}`);
  try {
    // The address is no one's of this machine.
    const starting = startControlPlane({ machine, address: "203.0.113.9" });
    await expect(starting).rejects.toThrow(/kube-apiserver has ended.*203\.0\.113\.9/s);
    expect(await requireCommand(["ip", "netns", "pids", machine.name])).toBe("");
  } finally {
    await machine.delete();
  }
});

it("one that is not ready in time is ended", async () => {
  const machine = await createNetns(`cpt-${process.pid}`);
  try {
    const starting = startControlPlane({ machine, address: "127.0.0.1", readyMs: 100 });
    await expect(starting).rejects.toThrow(/kube-apiserver is not ready after 100 ms/);
    expect(await requireCommand(["ip", "netns", "pids", machine.name])).toBe("");
  } finally {
    await machine.delete();
  }
});

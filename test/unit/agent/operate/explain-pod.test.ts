import { expect, it } from "vitest";
import { explainPod } from "../../../../host/agent/operate/explain-pod.ts";
import { toCniError } from "../../../../host/agent/server/answer.ts";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";
import type { FirstClaims } from "../../../../host/registry/epoch/registry-epoch.ts";
import { clusterIpam, RECORDS } from "../../../world/cluster-ipam.ts";
import { openClusterNode, openNode } from "../../../world/node.ts";
import { decodedSnapshot, pool, snapshotOf } from "../../../world/subjects.ts";

const READY = { ready: true, problems: [], health: { trouble: undefined } };
const ONE = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1"], default: true });

/** Returns the lines for a pod of namespace shop, and the agent's other calls meanwhile but reads. */
async function explain({ isFull = false, epoch }: { readonly isFull?: boolean; readonly epoch?: FirstClaims }) {
  const node = await openClusterNode({ snapshot: snapshotOf(ONE) });
  if (isFull) await node.bind("10.6.0.1", "web-1");
  const asked: string[] = [];
  const ask = async (name: string) => void asked.push(name);
  const cluster = clusterIpam({ records: { ...RECORDS, markWanted: ask }, markWanted: ask, epoch });
  node.calls.length = 0;
  const deps = { ipam: node.ipam({ cluster }), backend: READY, toCniError };
  const { lines } = await explainPod(deps, { namespace: "shop", pod: "web-0" });
  return { lines, acts: [...asked, ...node.calls.filter((call) => !call.startsWith("GET "))] };
}

it.each([
  [false, 'an ADD of eth0 now would get 10.6.0.1 of pool "blue", which is free'],
  [true, "an ADD of eth0 now would be refused with code 101: No address is free"],
])("only reads, the pool being full %s, and says when", async (isFull, wanted) => {
  const { lines, acts } = await explain({ isFull });
  expect(lines[0]).toContain(wanted);
  expect(lines.at(-1)).toMatch(/^note: seen at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ; another pod may be faster$/);
  expect(acts).toEqual([]);
});

it("says which address the pod keeps, on a network that only the address's record names", async () => {
  const metadata = { name: "web-0", namespace: "shop", uid: "uid-web-0" };
  const { pods } = decodedSnapshot({ apiVersion: "v1", kind: "Pod", metadata });
  const node = await openNode({ snapshot: { ...snapshotOf(ONE), pods } });
  await node.bind("10.6.0.1", "web-0");
  const deps = { ipam: node.ipam(), backend: READY, toCniError };
  const { lines } = await explainPod(deps, { namespace: "shop", pod: "web-0" });
  expect(lines[0]).toContain('would get 10.6.0.1 of pool "blue", which it has already');
});

it.each(["find", "identify"])("says once which input %s could not read, and passes no verdict", async (step) => {
  const node = await openClusterNode({ snapshot: snapshotOf(ONE) });
  const forbidden = new ApiError({ status: 403, reason: "Forbidden", operation: "GET /pods", message: "no right" });
  const ipam = node.ipam({ cluster: clusterIpam() });
  const identifier = { ...ipam.identifier, [step]: () => Promise.reject(new Error("x", { cause: forbidden })) };
  const deps = { ipam: { ...ipam, identifier }, backend: READY, toCniError };
  const message = "What pod shop/web-0 would get is unknown; this agent could not read it: no right";
  await expect(explainPod(deps, { namespace: "shop", pod: "web-0" })).rejects.toMatchObject({ message });
});

it("registry-epoch: says for which nodes first addresses wait", async () => {
  const { lines } = await explain({ epoch: { isOpen: true, waitsFor: "node n2" } as FirstClaims });
  expect(lines).toContain("note: the registry is new, and first addresses wait for node n2");
});

it("a network definition that is too long is refused, as in the ADD", async () => {
  const ipam = (await openClusterNode({ snapshot: snapshotOf(ONE) })).ipam({ cluster: clusterIpam() });
  const entry = { type: "macvlan", ipam: { type: "berth" }, padding: "x".repeat(65_536) };
  const nicsOf = () => [{ ifName: "eth0", network: "lan", plugins: [{ entry, place: "plugins[0]" }] }];
  const deps = { ipam: { ...ipam, networks: { ...ipam.networks, nicsOf } }, backend: READY, toCniError };
  const { lines } = await explainPod(deps, { namespace: "shop", pod: "web-0" });
  expect(lines[0]).toContain("would be refused with code 7: Invalid network configuration: found 6");
});

/**
 * An API server's changes of an object of Berth's kinds before it stores it: fields that it drops, defaults, the status
 * apart, generations. Run on a real one (test/cluster/crds.test.ts) and on the fake (kinds.test.ts).
 */
import { beforeAll, expect, it } from "vitest";
import { ApiError, type KubeApi, type KubeCall } from "../../../../host/kubernetes/kube-api.ts";

const HASH = "0123456789abcdef";

// biome-ignore lint/suspicious/noExplicitAny: an object as the API server has it
type Loose = any;

export function describeStoring(open: () => Promise<KubeApi>): void {
  let api: KubeApi;
  beforeAll(async () => {
    api = await open();
  });
  const call = (method: KubeCall["method"], path: string, body: object): Promise<Loose> =>
    api.call({ method, path: `/apis/ipam.vendor.io/v1/${path}`, patienceMs: 0, body });
  const create = (kind: string, name: string, parts: object): Promise<Loose> =>
    call("POST", `${kind.toLowerCase()}s`, { apiVersion: "ipam.vendor.io/v1", kind, metadata: { name }, ...parts });
  const refusal = (attempt: Promise<unknown>): Promise<string> =>
    attempt.then(
      () => "done",
      (error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
        const fields = error.causes.map(({ field, message }) => `${field}: ${message}`);
        return [error.status, error.reason, ...fields].join(" ");
      },
    );
  const subnet = "10.6.0.0/24";
  const POOL = { subnet, addressSpace: "", default: false, disable: false, selection: "hash" };
  const NODE_LOST = { reason: "NodeLost", mac: "", parent: "" };
  const LOST = { address: "10.12.0.1", prefixLength: 24, pool: "blue", state: "Quarantined", node: "n1" };

  const podAffinity = { matchLabels: { app: "a" } };
  const route = { dst: "10.0.0.0/8", gw: "10.6.0.2" };
  const unknown = { podAffinity: { ...podAffinity, more: 1 }, routes: [{ ...route, via: 1 }] };
  const later = { quarantine: { reason: "NodeLost", later: { x: 1 } }, soon: [1] };
  const chosen = { selection: "ascending", default: true };
  it.each<[kind: string, name: string, spec: object, stored: object]>([
    ["IPPool", "storing-a", { subnet }, POOL],
    ["IPPool", "storing-b", { subnet, disable: null, ...chosen, gateway: null }, { ...POOL, ...chosen }],
    ["Subnet", "storing-a", { subnet, ips: [] }, { subnet, ips: [], addressSpace: "" }],
    ["ReservedIP", "storing-a", { ips: ["10.6.0.9"] }, { ips: ["10.6.0.9"], addressSpace: "" }],
    ["IPAllocation", "10.12.0.1", { ...LOST, ...later }, { ...LOST, addressSpace: "", quarantine: NODE_LOST }],
    ["IPPool", "storing-c", { subnet, ...unknown }, { ...POOL, podAffinity, routes: [route] }],
  ])("%s %s: %o is stored as %o", async (kind, name, spec, stored) => {
    expect((await create(kind, name, { spec })).spec).toEqual(stored);
  });

  it("a status is written apart from the rest, and counts no generation", async () => {
    const made = await create("IPPool", "storing-d", { spec: { subnet }, status: { total: 7 } });
    expect([made.status, made.metadata.generation]).toEqual([undefined, 1]);
    const path = "ippools/storing-d";
    const told = await call("PATCH", `${path}/status`, { spec: { disable: true }, status: { total: 7, later: 1 } });
    expect([told.status, told.spec.disable, told.metadata.generation]).toEqual([{ total: 7 }, false, 1]);
    const changed = await call("PATCH", path, { spec: { disable: true }, status: { total: 9 } });
    expect([changed.status, changed.spec.disable, changed.metadata.generation]).toEqual([{ total: 7 }, true, 2]);
    expect(await refusal(call("PATCH", `${path}/status`, { status: { total: "many" } }))).toMatch(
      /^422 Invalid status\.total: Invalid value: "string": (?:status\.)?total in body must be of type integer: "string"/,
    );
  });

  it("a usage has its status from the start, and nowhere else", async () => {
    const made = await create("IPPoolUsage", "storing-a", { status: { rangesHash: HASH, total: 3 } });
    expect([made.status.total, made.status.others, made.metadata.generation]).toEqual([3, 0, 1]);
    const path = "ippoolusages/storing-a";
    const changed = await call("PATCH", path, { status: { total: 4 } });
    expect([changed.status.total, changed.status.rangesHash, changed.metadata.generation]).toEqual([4, HASH, 2]);
    expect(await refusal(call("PATCH", `${path}/status`, { status: { total: 5 } }))).toMatch(/^404 /);
  });

  it.each<[kind: string, parts: object, wanted: string]>([
    ["IPPoolUsage", {}, "422 Invalid status: Required value"],
    [
      "IPPoolUsage",
      { status: { rangesHash: "0", free: -1, bitmap: "?" } },
      "422 Invalid status.free: Invalid value: -1: status.free in body should be greater than or equal to 0 " +
        "status.rangesHash: Invalid value: \"0\": status.rangesHash in body should match '^[0-9a-f]{16}$' " +
        "status.bitmap: Invalid value: \"?\": status.bitmap in body should match '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'",
    ],
    [
      "IPPool",
      { spec: { subnet, selection: "last" } },
      'Unsupported value: "last": supported values: "hash", "ascending"',
    ],
    ["IPPool", { spec: { subnet, addressSpace: "a".repeat(64) } }, "Too long: may not be more than 63 bytes"],
    ["ReservedIP", { spec: { ips: [] } }, "spec.ips in body should have at least 1 items"],
    ["ReservedIP", { spec: { ips: Array(1025).fill("10.6.0.9") } }, "Too many: 1025: must have at most 1024 items"],
    [
      "IPPool",
      { spec: { subnet, ips: {} } },
      'Invalid value: "object": spec.ips in body must be of type array: "object"',
    ],
    ["IPPool", { spec: { subnet: "10.6.0.1/24" } }, 'found "10.6.0.1/24", want its canonical form'],
  ])("%s with %o is refused: %s", async (kind, parts, wanted) => {
    const words = (text: string): string[] => text.split(" ").sort();
    const said = await refusal(create(kind, "storing-z", parts));
    expect(words(said)).toEqual(expect.arrayContaining(words(wanted)));
  });
}

/** The end of a release that has very many addresses; the rest is in test/cluster/chart-hooks.test.ts. */
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { uninstallFromCluster } from "../../../host/install/uninstall-cluster.ts";
import type { KubeApi, KubeCall } from "../../../host/kubernetes/kube-api.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

it.each([false, true])("addresses are not kept in memory while more are listed; by force: %s", async (force) => {
  let first: WeakRef<object> | undefined;
  const isKept: boolean[] = [];
  const call = async ({ path, query }: KubeCall): Promise<object> => {
    const page = path.endsWith("/ipallocations") ? Number(query?.continue ?? 1) : undefined;
    const spec = { state: "Bound" };
    if (page === 1) first = new WeakRef(spec);
    if (page === 3) {
      await setImmediate();
      collectGarbage();
      isKept.push(first?.deref() !== undefined);
    }
    const metadata = { resourceVersion: "1", continue: { 1: "2", 2: "3" }[page ?? 3] };
    return { metadata, items: [{ metadata: { name: "10.6.0.21" }, spec }] };
  };
  const names = { namespace: "a", agent: "b", controller: "c", selector: "d=e" };
  await uninstallFromCluster({
    ...{ ...names, force, keepState: false, limitMs: 0, print: () => {} },
    api: { call } as unknown as KubeApi,
    cleaner: { metadata: { name: "f", namespace: "a" }, spec: { selector: { matchLabels: {} } } },
  }).catch(() => {});
  expect(isKept).toEqual([false]);
});

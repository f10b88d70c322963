/** One cluster for the tests that start with no pod and leave none: cluster.test.ts starts it, and loads them. */
import { NAMESPACE, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import { type Observer, observe } from "../lab/nodes/observe.ts";

export { NAMESPACE };

/** Set before the first test runs. */
export let cluster: RealCluster;
export let seen: Observer;

/** Its network is `berth`; a file that needs another one sets it, and sets it back. */
export async function startSharedCluster(): Promise<void> {
  cluster = await startRealCluster({ nodes: 3, isObserved: true });
  seen = observe(cluster);
}

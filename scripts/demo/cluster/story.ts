/** The cluster's story: manifests, agents on two nodes, pods of workloads, troubles, and an operator's questions. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseRange } from "../../../host/net/range.ts";
import { applyFolder, applyObject, readDocuments } from "../../../test/lab/apply.ts";
import { requestNodeToken } from "../../../test/lab/cluster/rights.ts";
import { runCommand } from "../../../test/lab/command.ts";
import { KubeError, type KubeObject } from "../../../test/lab/kube-client.ts";
import { root } from "../../setup/paths.mjs";
import type { Narrator, Scene, Story } from "../engine.ts";
import { ALLOCATIONS, allocationsOf, createPod, EXAMPLES, open, type Place, podOf, showAllocations } from "./place.ts";

const GROUP = "/apis/ipam.vendor.io/v1";
/** Time for which the API server is away. */
const AWAY_MS = 5_000;
/** A DEL that waited for it would take this long at least. */
const QUICK_MS = 3_000;
export const OPERATOR_TITLE = "An operator's questions";

/** Claims that the API server refuses the call, for that reason. */
async function claimRefusal(narrator: Narrator, what: string, call: Promise<unknown>, reason: string): Promise<void> {
  const error = await call.catch((refusal: unknown) => refusal);
  const text = error instanceof KubeError ? `${error.reason}: ${error.text}` : "It was done";
  narrator.claim(what, error instanceof KubeError && text.includes(reason), text);
}

/** Claims that these objects become so many. */
function claimCount(narrator: Narrator, what: string, ask: () => Promise<KubeObject[]>, wanted: number) {
  return narrator.becomes(what, ask, ({ length }) => [length === wanted, `${length} objects`]);
}

function claimFree(narrator: Narrator, place: Place, what: string, addresses: readonly string[]) {
  const left = async () => (await allocationsOf(place)).filter(({ spec }) => addresses.includes(spec.address));
  return narrator.becomes(what, left, ({ length }) => [length === 0, addresses.join(", ")]);
}

const manifestScene: Scene<Place> = {
  title: "A cluster and its manifests",
  text: `etcd and kube-apiserver are the real ones, with Berth's kinds, accounts and policies; there are no controllers. The examples in
    deploy/examples are applied as kubectl apply --server-side does it.`,
  act: async ({ client }, narrator) => {
    narrator.lines([`deploy/examples/   ${(await applyFolder(client, EXAMPLES)).join(", ")}`]);
    const { items } = await client.get(`${GROUP}/ippools`);
    const names = items.map(({ metadata }: KubeObject) => metadata.name).join(", ");
    narrator.claim("the pools are there", items.length === 3, names);
    const [pool] = await readDocuments(join(EXAMPLES, "20-pools.yaml"));
    const wrong = { ...pool, metadata: { name: "wrong" }, spec: { ...pool.spec, gateway: "10.61.0.1" } };
    const what = "a pool whose gateway lies elsewhere is refused by the API server itself";
    await claimRefusal(narrator, what, applyObject(client, wrong), "spec.gateway");
  },
};

const nodesScene: Scene<Place> = {
  title: "Two nodes, two agents",
  text: `Each node has an agent, which knows the cluster from its own watches: pools, settings, and the pods of its own node. It has a token
    of the account berth-agent, as the node's kubelet would get it for the agent's pod: it names the node.`,
  act: async ({ nodes, plane }, narrator) => {
    for (const { name, agent } of nodes) {
      const ask = () => agent.request("/v1/health");
      await narrator.becomes(`the agent of ${name} is ready`, ask, ({ status }) => [status === 200, `HTTP ${status}`]);
    }
    const client = await plane.openClient({ token: await requestNodeToken(plane.client, "node1") });
    const deleting = client.delete(`${GROUP}/ippools/lan-v4`);
    await claimRefusal(narrator, "an agent may not delete a pool", deleting, "Forbidden").finally(() => client.close());
  },
};

const deploymentScene: Scene<Place> = {
  title: "Pods of a Deployment",
  text: `web wants four pods and names no pool: the namespace shop does, one for each family. The scheduler binds two of them to each node
    (here the demo does). The runtime takes some time to make a pod's sandbox; the agent does not wait for it.`,
  act: async (place, narrator) => {
    for (const number of [0, 1, 2, 3]) await createPod(place, `web-${number}`, number % 2 ? 2 : 1);
    const what = "all addresses are claimed before any runtime has asked";
    await claimCount(narrator, what, () => allocationsOf(place), 8);
    for (const pod of place.pods.values()) await pod.attach(narrator);
    narrator.remark("One object for each address, whose name is the address. Whoever creates it has the address:");
    await showAllocations(place, narrator);
    const [object] = await podOf(place, "web-0").allocations();
    const creating = place.client.create(ALLOCATIONS, { ...object, metadata: { name: object?.metadata.name } });
    await claimRefusal(narrator, "a second object of that name cannot be created", creating, "AlreadyExists");
    await podOf(place, "web-0").reaches(narrator, podOf(place, "web-1"));
  },
};

const reservedScene: Scene<Place> = {
  title: "A reserved address",
  text: `Pool desk has three addresses, and the ReservedIP printer says that no pod may have 10.60.0.121. So two pods get one; an operator
    asks about a third below.`,
  act: async (place, narrator) => {
    const pods = [await createPod(place, "desk-0", 1), await createPod(place, "desk-1", 2)];
    for (const pod of pods) await pod.attach(narrator);
    const given = pods.flatMap(({ addresses }) => addresses).sort();
    narrator.claim("the printer's address is left out", given.join() === "10.60.0.120,10.60.0.122", given.join(", "));
  },
};

const settingsScene: Scene<Place> = {
  title: "Settings are followed",
  text: `A released address rests, by the example for 30 seconds. The administrator writes two seconds into vendor-conf; no agent is started
    again. web-3 goes.`,
  act: async (place, narrator) => {
    const path = "/api/v1/namespaces/kube-system/configmaps/vendor-conf";
    const text = (await place.client.get(path)).data["conf.yml"].replace("Cooldown: 30s", "Cooldown: 2s");
    await place.client.patch(path, { data: { "conf.yml": text } });
    await sleep(500);
    const web3 = podOf(place, "web-3");
    const startMs = performance.now();
    await web3.end();
    await claimFree(narrator, place, "its addresses are free again", web3.addresses);
    const seconds = (performance.now() - startMs) / 1_000;
    narrator.claim("that took no 30 seconds", seconds < 20, `${seconds.toFixed(1)} s`);
  },
};

const awayScene: Scene<Place> = {
  title: "The API server is away",
  text: `For ${AWAY_MS / 1000} seconds there is no API server. A pod that was bound before has its addresses already; pods that go are not held up.
    What has to be told is told later.`,
  act: async (place, narrator) => {
    const leaving = [podOf(place, "web-1"), podOf(place, "desk-1")];
    const web5 = await createPod(place, "web-5", 2);
    await claimCount(narrator, "web-5 is bound, and its addresses are claimed", () => web5.allocations(), 2);
    await place.plane.server.stop();
    const startMs = performance.now();
    for (const pod of leaving) {
      const tookMs = await pod.detach();
      narrator.claim(`the DEL of ${pod.name} is done`, tookMs < QUICK_MS, `${tookMs.toFixed(0)} ms`);
    }
    const { exitCode, stderr } = await web5.add();
    narrator.claim("the ADD of web-5 needs no API server", exitCode === 0, web5.addresses.join(", ") || stderr.trim());
    const judged = web5.judged();
    await sleep(Math.max(0, AWAY_MS - (performance.now() - startMs)));
    await place.plane.server.start();
    await judged;
    for (const pod of leaving) await pod.remove();
    const gone = leaving.flatMap(({ addresses }) => addresses);
    await claimFree(narrator, place, "what was released meanwhile is free", gone);
    await web5.reaches(narrator, podOf(place, "web-0"));
  },
};

const identityScene: Scene<Place> = {
  title: "A pod with an identity moves",
  text: "db-0 belongs to a StatefulSet. It goes, and comes back on the other node as another pod of the same name.",
  act: async (place, narrator) => {
    const first = await createPod(place, "db-0", 1);
    await first.attach(narrator);
    await first.end();
    const kept = async () => (await allocationsOf(place)).filter(({ spec }) => spec.state === "Kept");
    await claimCount(narrator, "while it is away its addresses are kept for it", kept, 2);
    const second = await createPod(place, "db-0", 2);
    await second.attach(narrator);
    const isSame = second.addresses.join() === first.addresses.join();
    narrator.claim("it has the addresses that it had, on the other node", isSame, second.addresses.join(", "));
    await podOf(place, "web-0").reaches(narrator, second);
    await showAllocations(place, narrator);
  },
};

const subnetScene: Scene<Place> = {
  title: "A Deployment that names a Subnet",
  text: `api has no pool made by hand: it names the Subnet "rack", and the controller generates one for it, with its replicas and one address
    more for a rolling update. Until now there was no controller.`,
  act: async (place, narrator) => {
    const { client } = place;
    const path = "/apis/apps/v1/namespaces/shop/deployments/api";
    const generated = async (): Promise<KubeObject[]> =>
      (await client.get(`${GROUP}/ippools`)).items.filter(({ spec }: KubeObject) => spec.generated !== undefined);
    const claimSize = (what: string, size: number) =>
      narrator.becomes(what, generated, ([pool]) => {
        const { ips = [], generated: { reason } = { reason: "" } } = pool?.spec ?? {};
        return [sizeOf(ips) === size, `${pool?.metadata.name}: ${ips.join(", ")} (${reason})`];
      });
    await place.startController();
    await claimSize("api has a pool of three addresses", 3);
    for (const number of [0, 1, 2, 3, 4]) {
      if (number === 2) {
        narrator.remark("Its replicas become five; the pool follows before the pods come.");
        await client.patch(path, { spec: { replicas: 5 } });
        await claimSize("the pool has grown", 6);
      }
      await (await createPod(place, `api-${number}`, number % 2 ? 2 : 1)).attach(narrator);
    }
    narrator.remark("The Deployment is deleted, and its pods with it.");
    await client.delete(path);
    for (const pod of [...place.pods.values()]) if (pod.name.startsWith("api-")) await pod.end();
    const rack = async () => ({ pools: await generated(), ...(await client.get(`${GROUP}/subnets/rack`)).status });
    await narrator.becomes("its addresses are the Subnet's again", rack, ({ pools, assigned, total }) => {
      return [pools.length === 0 && assigned === 0, `${assigned} of ${total} assigned`];
    });
  },
};

function sizeOf(ranges: readonly string[]): number {
  const all = ranges.flatMap((text) => parseRange(text) ?? []);
  return all.reduce((sum, { first, last }) => sum + Number(last.value - first.value) + 1, 0);
}

const operatorScene: Scene<Place> = {
  title: OPERATOR_TITLE,
  text: "Which pod has this address, which had it before, why does a pod not start, and is everything as it should be?",
  act: async (place, narrator) => {
    const { node, addresses } = podOf(place, "web-0");
    const env = { ...node.agent.env, KUBECONFIG: place.plane.kubeconfig };
    const functions = `berthctl() { "${process.execPath}" "${join(root, "dist", "berthctl.mjs")}" "$@"; }`;
    /** Types the command on the node as its administrator. */
    const type = async (line: string) => {
      const outcome = await runCommand(node.netns.enter(["bash", "-c", `${functions}; ${line}`]), { env });
      const output = `${outcome.stdout}${outcome.stderr}`;
      narrator.command(line, output);
      return { exitCode: outcome.exitCode, output };
    };
    const found = await type(`berthctl ip ${addresses[0]}`);
    narrator.claim("the address is the pod's", found.output.includes("shop/web-0"), "shop/web-0");
    const past = await type(`berthctl history ${addresses[0]}`);
    narrator.claim("its ADD is on record", past.output.includes("ADD"), "ADD");
    // desk has two addresses for pods, and desk-0 has one of them.
    await (await createPod(place, "desk-3", 1)).attach(narrator);
    const desk4 = await createPod(place, "desk-4", 1);
    const explained = await type("berthctl explain desk-4 -n shop");
    const { exitCode, stderr } = await desk4.add();
    narrator.claim("explain says what the ADD then does", explained.exitCode === 1 && exitCode !== 0, stderr.trim());
    await desk4.end();
    const checked = await type("berthctl check");
    narrator.claim(
      "no address is a duplicate, leaked or lost",
      checked.exitCode === 0,
      `exit code ${checked.exitCode}`,
    );
    const metrics = "curl -s --unix-socket $BERTH_SOCKET http://agent/metrics | grep ^berth_cni_requests_total";
    const isCounted = (await type(metrics)).output.includes('command="ADD"');
    narrator.claim("every request is counted", isCounted, "Prometheus scrapes these lines");
  },
};

const endScene: Scene<Place> = {
  title: "Everything is deleted, and what etcd has seen",
  text: `DEL for every pod. The StatefulSet stays, and so does what is kept for its pod. Then the history of all addresses, write by write, as
    etcd has it.`,
  act: async (place, narrator) => {
    const names = [...place.pods.keys()].join(", ");
    for (const pod of [...place.pods.values()]) await pod.end();
    narrator.claim("all pods are deleted", place.pods.size === 0, names);
    const states = async () => (await allocationsOf(place)).map(({ spec }) => `${spec.address} ${spec.state}`);
    await narrator.becomes("no address has an object but those of db-0", states, (left) => {
      return [left.length === 2 && left.every((text) => text.endsWith(" Kept")), left.join(", ")];
    });
    await place.history.caughtUp();
    const { breaches, writes } = place.history.checker;
    const seen = breaches.length === 0 ? `${writes} writes, none against the rules` : breaches.join("\n");
    narrator.claim("no two pods ever had one address", breaches.length === 0 && writes > 0, seen);
  },
};

export const clusterStory: Story<Place> = {
  open,
  scenes: [
    ...[manifestScene, nodesScene, deploymentScene, reservedScene, settingsScene, awayScene, identityScene],
    ...[subnetScene, operatorScene, endScene],
  ],
};

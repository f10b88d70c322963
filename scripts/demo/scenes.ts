/** The story, scene by scene. Each does something a node does every day, and claims only what it has checked. */
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { searchAnswer } from "../../host/records/map-records.ts";
import { eventually } from "../../test/lab/waiting.ts";
import { claimNic, claimRecords, detachAll, requirePod, type Scene } from "./acts.ts";
import { conflictScene } from "./conflict-scene.ts";
import { pools } from "./manifests.ts";
import { overview, ping, recordsOf, resultAddresses, routesOfPods, usedAddresses } from "./observe.ts";
import type { Pod } from "./stage.ts";
import { outsideScene, twoNicsScene, underlayScene } from "./underlay-scenes.ts";

const BLUE_ONLY = { "ipam.vendor.io/ippool": '{"ipv4":["blue"]}' };
const DUAL_STACK = { "ipam.vendor.io/ippool": '{"ipv4":["lan-v4"],"ipv6":["lan-v6"]}' };
const TWO_NICS = {
  "k8s.v1.cni.cncf.io/networks": "lan",
  "ipam.vendor.io/ippools":
    '[{"interface":"eth0","ipv4":["blue"]},{"interface":"net1","ipv4":["lan-v4"],"ipv6":["lan-v6"],"cleangateway":true}]',
};
const TINY_ONLY = { "ipam.vendor.io/ippool": '{"ipv4":["tiny"]}' };

const nodeScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A node and its agent",
    `On every node runs one agent. It knows pools of addresses, here from YAML files in a folder, and waits at a unix socket
     for the container runtime's plugins. The node of this story is the network namespace ${stage.node.name}.`,
  );
  const { status, problems } = await stage.agent.get("/v1/health");
  narrator.claim(
    "the agent is ready",
    status === "ready" && problems.length === 0,
    `${status}, ${problems.length} problems`,
  );
  const used = await usedAddresses(stage);
  narrator.claim("no address is in use", used === 0, `${used} used`);
};

const attachScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "Pods get their addresses",
    `A pod is a network namespace. For each of its NICs the runtime (here this demo) calls a main plugin (here the reference
     plugins bridge and macvlan), which makes the NIC and asks Berth for its addresses. Which pool: the pod's annotation says.`,
  );
  const web0 = await stage.createPod({ name: "web-0", uid: "uid-web-0", annotations: BLUE_ONLY });
  await claimNic(narrator, web0, await stage.attach(web0, "bridge", "eth0"), ["blue"]);
  const web1 = await stage.createPod({ name: "web-1", uid: "uid-web-1", annotations: BLUE_ONLY });
  await claimNic(narrator, web1, await stage.attach(web1, "bridge", "eth0"), ["blue"]);
  narrator.remark("db-0 asks for both families, on the data-centre's own network by macvlan:");
  const db0 = await stage.createPod({ name: "db-0", uid: "uid-db-0", annotations: DUAL_STACK });
  await claimNic(narrator, db0, await stage.attach(db0, "lan", "eth0"), ["lan-v4", "lan-v6"]);
  narrator.remark("gw-0 has two NICs, one in each network; all its addresses are claimed together or not at all:");
  const gw0 = await stage.createPod({ name: "gw-0", uid: "uid-gw-0", annotations: TWO_NICS });
  await claimNic(narrator, gw0, await stage.attach(gw0, "bridge", "eth0"), ["blue"]);
  const claimed = (await recordsOf(stage)).filter((record) => record.pod === "gw-0" && record.interface === "net1");
  const seen = claimed.map(({ address }) => address).join(", ");
  narrator.claim("the second NIC's addresses are claimed before it exists", claimed.length === 2, seen);
  await claimNic(narrator, gw0, await stage.attach(gw0, "lan", "net1"), ["lan-v4", "lan-v6"]);
};

const talkScene: Scene = async (stage, narrator) => {
  narrator.scene("They reach each other", "The addresses are real, and so are the networks: pings between namespaces.");
  const [web0, web1, db0, gw0] = ["web-0", "web-1", "db-0", "gw-0"].map((name) => requirePod(stage, name));
  const reach = async (from: Pod | undefined, what: string, address: string | undefined): Promise<void> => {
    if (from === undefined || address === undefined) throw new Error(`Nothing to ping: ${what}`);
    const { answered, seen } = await ping(from.netns, address);
    narrator.claim(`${from.spec.name} reaches ${what}`, answered, seen);
  };
  await reach(web0, "web-1", web1 && resultAddresses(web1)[0]);
  await reach(web0, "its gateway on the node", pools.blue.gateway);
  await reach(db0, "the data-centre's gateway", pools["lan-v4"].gateway);
  await reach(db0, "it over IPv6", pools["lan-v6"].gateway);
  await reach(gw0, "web-0 through its first NIC", web0 && resultAddresses(web0)[0]);
  for (const address of (db0 && resultAddresses(db0)) ?? []) await reach(gw0, "db-0 through its second NIC", address);
};

const recordScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "What the agent has written down",
    "Every address is recorded before the pod sees it. The agent's answer:",
  );
  narrator.lines(await overview(stage));
  await claimRecords(stage, narrator, "the records are exactly what the pods carry");
};

const mapScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "The same as a map",
    `The agent shows its pools in a browser, too: open ${stage.mapUrl} while this demo runs, or keep it there with
     "npm run demo -- --stay".`,
  );
  const page = await fetch(stage.mapUrl);
  const title = /<title>(?<title>.*)<\/title>/.exec(await page.text())?.groups?.title ?? "";
  narrator.claim("the page is there", page.ok && title.startsWith("Address map"), `HTTP ${page.status}, "${title}"`);
  const [wanted = ""] = resultAddresses(requirePod(stage, "web-0"));
  const find = async () => searchAnswer.parse(await (await fetch(`${stage.mapUrl}/api/v1/search?q=web-0`)).json());
  const { addresses } = await eventually(find, (found) => found.addresses.length === 1, 5_000);
  const seen = addresses.map(({ address, holders }) => `${address}, ${holders.map(({ pod }) => pod).join()}`).join();
  narrator.claim("it knows whose an address is", addresses[0]?.address === wanted, seen);
  const refused = await fetch(`${stage.mapUrl}/api/v1/pools`, { method: "DELETE" });
  narrator.claim("it changes nothing", refused.status === 405, `DELETE is answered with HTTP ${refused.status}`);
};

const crashScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "The agent is killed",
    "kill -9, no goodbye. Pods must not notice, and the runtime must not be stuck.",
  );
  const [web0, web1] = [requirePod(stage, "web-0"), requirePod(stage, "web-1")];
  const { pid } = stage.agent;
  await stage.agent.kill("SIGKILL");
  const { answered, seen } = await ping(web0.netns, resultAddresses(web1)[0] ?? "");
  narrator.claim("pods go on working without it", answered, seen);

  const deleted = await detachAll(stage, web1);
  const spooled = await readdir(stage.agent.spool);
  narrator.claim("a pod can be deleted meanwhile", deleted, `web-1: the plugin ${deleted ? "succeeds" : "fails"}`);
  narrator.claim(
    "that release is kept on disk until an agent can do it",
    spooled.length === 1,
    `spool: ${spooled.join(", ")}`,
  );

  const web2 = await stage.createPod({ name: "web-2", uid: "uid-web-2", annotations: BLUE_ONLY });
  const startMs = Date.now();
  const attaching = stage.attach(web2, "bridge", "eth0").then((nic) => ({ nic, waitedMs: Date.now() - startMs }));
  attaching.catch(() => {}); // Awaited below; until then its failure must not end the program.
  await sleep(1_000);
  await stage.agent.start();
  const { nic, waitedMs } = await attaching;
  narrator.claim(
    "a pod that is created meanwhile waits for the next agent",
    waitedMs >= 1_000,
    `${waitedMs} ms, then ${nic.addresses.join()}`,
  );
  narrator.claim("the next agent is another process", stage.agent.pid !== pid, `pid ${stage.agent.pid} after ${pid}`);
  const left = await eventually(
    () => readdir(stage.agent.spool),
    (names) => names.length === 0,
    5_000,
  );
  narrator.claim("it has done what was left to do", left.length === 0, `spool: ${left.length} files`);
  await claimRecords(stage, narrator, "it knows all pods of its predecessor, and no longer web-1");
};

const refusalScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A pool runs out",
    "Pool tiny has one address. The first pod gets it; the second is refused, and told why.",
  );
  const first = await stage.createPod({ name: "job-0", uid: "uid-job-0", annotations: TINY_ONLY });
  await claimNic(narrator, first, await stage.attach(first, "bridge", "eth0"), ["tiny"]);
  const second = await stage.createPod({ name: "job-1", uid: "uid-job-1", annotations: TINY_ONLY });
  const { exitCode, stdout } = await stage.call("ADD", second, { network: "bridge", ifName: "eth0" });
  const text = String(stdout?.msg);
  narrator.claim("the refusal names the pool", exitCode !== 0 && text.includes("tiny"), text);
  await claimRecords(stage, narrator, "nothing of the refused pod is left behind");
};

const endScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "Everything is deleted",
    "DEL for every pod. A released address rests for two seconds here, then it is free again.",
  );
  const ways = await routesOfPods(stage.node);
  for (const pod of [...stage.pods.values()]) {
    const deleted = await detachAll(stage, pod);
    narrator.claim(
      `${pod.spec.name} is deleted`,
      deleted,
      `NICs: ${pod.nics.map(({ ifName }) => ifName).join(", ") || "none"}`,
    );
  }
  const quarantined = await eventually(
    async () => (await recordsOf(stage)).filter(({ state }) => state === "Quarantined"),
    (list) => list.length === 0,
    20_000,
  );
  const seen = `${quarantined.length} in quarantine; Berth probed them again, and no machine answered`;
  narrator.claim("the addresses that the printer had are free", quarantined.length === 0, seen);
  const records = await eventually(
    () => recordsOf(stage),
    (list) => list.length === 0,
    15_000,
  );
  narrator.claim("no address is recorded any more", records.length === 0, `${records.length} records`);
  const used = await eventually(
    () => usedAddresses(stage),
    (count) => count === 0,
    5_000,
  );
  narrator.claim("all addresses came back", used === 0, `${used} used`);
  const left = await routesOfPods(stage.node);
  const seenWays = `${left.length} routes of Berth's, ${ways.length} before`;
  narrator.claim("the node has no way to a pod any more", left.length === 0 && ways.length > 0, seenWays);
  narrator.lines(await overview(stage));
};

export const scenes: readonly Scene[] = [
  nodeScene,
  attachScene,
  talkScene,
  recordScene,
  mapScene,
  underlayScene,
  outsideScene,
  twoNicsScene,
  conflictScene,
  crashScene,
  refusalScene,
  endScene,
];

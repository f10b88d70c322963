/** A node's day: pods come, reach one another, are found in the way of other machines, and go. */
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { addressesOf } from "../../../test/lab/netns/world.ts";
import type { Scene, Story } from "../engine.ts";
import { conflictScene } from "./conflict-scene.ts";
import {
  claimRecords,
  countUsed,
  createPod,
  hasMap,
  KEPT,
  open,
  type Place,
  type Pod,
  podOf,
  pools,
  recordsOf,
  showAll,
} from "./place.ts";
import { outsideScene, twoNicsScene, underlayScene } from "./underlay-scenes.ts";

const BLUE = { ippool: { ipv4: ["blue"] } };
const DUAL_STACK = { ippool: { ipv4: ["lan-v4"], ipv6: ["lan-v6"] } };
const TWO_NICS = {
  "k8s.v1.cni.cncf.io/networks": "lan",
  ippools: [
    { interface: "eth0", ipv4: ["blue"] },
    { interface: "net1", ipv4: ["lan-v4"], ipv6: ["lan-v6"], cleangateway: true },
  ],
};

const nodeScene: Scene<Place> = {
  title: "A node and its agent",
  text: ({ node }) =>
    `On every node runs one agent. It knows pools of addresses, here from YAML files in a folder, and waits at a unix socket for the
     container runtime's plugins. The node of this story is the network namespace ${node.name}.`,
  act: async (place, narrator) => {
    const { status, problems } = await place.agent.get("/v1/health");
    narrator.claim("the agent is ready", status === "ready" && problems.length === 0, `${problems.length} problems`);
    const used = await countUsed(place);
    narrator.claim("no address is in use", used === 0, `${used} used`);
  },
};

const attachScene: Scene<Place> = {
  title: "Pods get their addresses",
  text: `A pod is a network namespace. For each of its NICs the runtime (here this demo) calls a main plugin (here the reference plugins
    bridge and macvlan), which makes the NIC and asks Berth for its addresses. Which pool: the pod's annotation says. Every address is
    recorded before the pod sees it.`,
  act: async (place, narrator) => {
    for (const name of ["web-0", "web-1"]) await (await createPod(place, name, BLUE)).attach(narrator, "bridge");
    narrator.remark("db-0 asks for both families, on the data-centre's own network by macvlan:");
    await (await createPod(place, "db-0", DUAL_STACK)).attach(narrator, "lan");
    narrator.remark("gw-0 has two NICs, one in each network; all its addresses are claimed together or not at all:");
    const gw0 = await createPod(place, "gw-0", TWO_NICS);
    await gw0.attach(narrator, "bridge");
    const claimed = (await recordsOf(place)).filter((each) => each.pod === "gw-0" && each.interface === "net1");
    const seen = claimed.map(({ address }) => address).join(", ");
    narrator.claim("the second NIC's addresses are claimed before it exists", claimed.length === 2, seen);
    await gw0.attach(narrator, "lan", "net1");
    narrator.remark(`A ReservedIP has kept ${KEPT} of pool blue for till-0 since before that pod existed:`);
    const till = await createPod(place, "till-0", BLUE);
    await till.attach(narrator, "bridge");
    narrator.claim("till-0 has the address that is kept for it", till.addresses.includes(KEPT), `${till.addresses}`);
    await showAll(place, narrator);
    await claimRecords(place, narrator, "the records are exactly what the pods carry");
  },
};

const talkScene: Scene<Place> = {
  title: "They reach each other",
  text: "The addresses are real, and so are the networks: pings between namespaces.",
  act: async (place, narrator) => {
    const [web0, web1, db0, gw0] = ["web-0", "web-1", "db-0", "gw-0"].map((name) => podOf(place, name)) as PodsOfTalk;
    const reach = (from: Pod, what: string, address = "") =>
      narrator.reaches(`${from.name} reaches ${what}`, from.netns, address);
    await reach(web0, "web-1", web1.lab.address(4));
    await reach(web0, "its gateway on the node", pools.blue.gateway);
    await reach(db0, "the data-centre's gateway", pools["lan-v4"].gateway);
    await reach(db0, "it over IPv6", pools["lan-v6"].gateway);
    await reach(gw0, "web-0 through its first NIC", web0.lab.address(4));
    for (const address of db0.addresses) await reach(gw0, "db-0 through its second NIC", address);
  },
};

/** The part of the answer that is read. */
interface SearchAnswer {
  readonly addresses: readonly { readonly address: string; readonly holders: readonly { readonly pod: string }[] }[];
}

type PodsOfTalk = [Pod, Pod, Pod, Pod];

const mapScene: Scene<Place> = {
  title: "The same as a map",
  text: ({ mapUrl }) =>
    `The agent shows its pools in a browser, too: open ${mapUrl} while this demo runs, or keep it there with "npm run demo -- --stay".`,
  act: async (place, narrator) => {
    const { mapUrl = "" } = place;
    const page = await fetch(mapUrl);
    const title = /<title>(?<title>.*)<\/title>/.exec(await page.text())?.groups?.title ?? "";
    narrator.claim("the page is there", page.ok && title.startsWith("Address map"), `HTTP ${page.status}, "${title}"`);
    const search = async () => (await (await fetch(`${mapUrl}/api/v1/search?q=web-0`)).json()) as SearchAnswer;
    const address = podOf(place, "web-0").lab.address(4);
    await narrator.becomes("it knows whose an address is", search, ({ addresses: [found] }) => {
      return [found?.address === address, `${found?.address}, ${found?.holders.map(({ pod }) => pod)}`];
    });
    const refused = await fetch(`${mapUrl}/api/v1/pools`, { method: "DELETE" });
    narrator.claim("it changes nothing", refused.status === 405, `DELETE is answered with HTTP ${refused.status}`);
  },
};

const crashScene: Scene<Place> = {
  title: "The agent is killed",
  text: "kill -9, no goodbye. Pods must not notice, and the runtime must not be stuck.",
  act: async (place, narrator) => {
    const { agent } = place;
    const [web0, web1] = [podOf(place, "web-0"), podOf(place, "web-1")];
    const { pid } = agent;
    const spooled = () => readdir(agent.spool);
    await agent.kill("SIGKILL");
    await narrator.reaches("pods go on working without it", web0.netns, web1.lab.address(4));
    await web1.end(place);
    narrator.claim("a pod can be deleted meanwhile", !place.pods.has("web-1"), "web-1");
    const kept = await spooled();
    narrator.claim("that release is kept on disk until an agent can do it", kept.length === 1, `spool: ${kept}`);
    const web2 = await createPod(place, "web-2", BLUE);
    const startMs = performance.now();
    const attaching = web2.call("ADD", "bridge").then((outcome) => {
      return { outcome, waitedMs: Math.round(performance.now() - startMs) };
    });
    await sleep(1_000);
    await agent.start();
    const { outcome, waitedMs } = await attaching;
    const isAnswered = outcome.exitCode === 0 && waitedMs >= 1_000;
    const seen = isAnswered ? `${waitedMs} ms, then ${addressesOf(outcome.stdout)}` : outcome.text;
    narrator.claim("a pod that is created meanwhile waits for the next agent", isAnswered, seen);
    narrator.claim("the next agent is another process", agent.pid !== pid, `pid ${agent.pid} after ${pid}`);
    const what = "it has done what was left to do";
    await narrator.becomes(what, spooled, ({ length }) => [length === 0, `spool: ${length} files`]);
    await claimRecords(place, narrator, "it knows all pods of its predecessor, and no longer web-1");
  },
};

const refusalScene: Scene<Place> = {
  title: "A pool runs out",
  text: "Pool tiny has one address. The first pod gets it; the second is refused, and told why.",
  act: async (place, narrator) => {
    const wish = { ippool: { ipv4: ["tiny"] } };
    await (await createPod(place, "job-0", wish)).attach(narrator, "bridge");
    const { exitCode, stdout } = await (await createPod(place, "job-1", wish)).call("ADD", "bridge");
    const text = String(stdout?.msg);
    narrator.claim("the refusal names the pool", exitCode !== 0 && text.includes("tiny"), text);
    await claimRecords(place, narrator, "nothing of the refused pod is left behind");
  },
};

const endScene: Scene<Place> = {
  title: "Everything is deleted",
  text: "DEL for every pod. A released address rests for two seconds here, then it is free again.",
  act: async (place, narrator) => {
    // Berth's routes to pods carry its protocol.
    const routes = async (): Promise<string[]> => {
      const texts = await Promise.all(["-4", "-6"].map((of) => place.node.ip(`${of} route show table all proto 98`)));
      return texts.flatMap((text) => text.split("\n")).filter((line) => line !== "");
    };
    const before = await routes();
    const names = [...place.pods.keys()].join(", ");
    for (const pod of [...place.pods.values()]) await pod.end(place);
    narrator.claim("all pods are deleted", place.pods.size === 0, names);
    const quarantined = async () => (await recordsOf(place)).filter(({ state }) => state === "Quarantined");
    await narrator.becomes("the addresses that the printer had are free", quarantined, ({ length }) => {
      return [length === 0, `${length} in quarantine; Berth probed them again, and no machine answered`];
    });
    const used = () => countUsed(place);
    await narrator.becomes("all addresses came back", used, (count) => [count === 0, `${count} used`]);
    const recorded = (await recordsOf(place)).length;
    narrator.claim("no address is recorded any more", recorded === 0, `${recorded} records`);
    const left = await routes();
    const seen = `${left.length} routes of Berth's, ${before.length} before`;
    narrator.claim("the node has no way to a pod any more", left.length === 0 && before.length > 0, seen);
    await showAll(place, narrator);
  },
};

export const nodeStory: Story<Place> = {
  open,
  sight: ({ mapUrl }) => (mapUrl === undefined ? "" : `The address map is at ${mapUrl}.`),
  scenes: [
    ...[
      nodeScene,
      attachScene,
      talkScene,
      ...(hasMap ? [mapScene] : []),
      underlayScene,
      outsideScene,
      twoNicsScene,
      conflictScene,
    ],
    ...[crashScene, refusalScene, endScene],
  ],
};

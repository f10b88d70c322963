/**
 * The benchmark `peers`: ADD and DEL of other IPAMs and of Berth, by turns, on one machine and one API server.
 * Effects: etcd and an API server on loopback; daemons and plugins; one network namespace; files below .scratch,
 * removed at the end.
 */
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runSetup } from "../../scripts/setup/run-setup.ts";
import type { Bench, BenchOptions, BenchReport } from "../harness/report.ts";
import { openPlace } from "../ipam/contestant.ts";
import { measureAlone } from "./alone.ts";
import { measureChains } from "./chain.ts";
import { countAll, type Requests } from "./requests.ts";
import { measureStorms } from "./storm.ts";
import { describeHeadline, describeMedians, failuresOf, plotsOf, summarize, targetsOf } from "./tabulate.ts";

export const peersBench: Bench = { name: "peers", run: runPeers };

async function runPeers({ quick }: BenchOptions): Promise<BenchReport> {
  runSetup("cluster", "peers");
  await using stack = new AsyncDisposableStack();
  const place = await openPlace(stack, "peers");
  const requests: Requests[] = [];
  const series = await measureAlone(place, quick, async (site) => void requests.push(...(await countAll(site))));
  const chains = await measureChains(place.directory, {
    atOnce: 1,
    warmUpRounds: 1,
    rounds: quick ? 1 : 3,
    callsPerRound: quick ? 5 : 15,
  });
  const storms = await measureStorms(place, quick);
  const figures = { series, requests, chains, storms };
  return {
    tables: summarize(figures),
    targets: targetsOf(figures),
    notes: [...NOTES, ...failuresOf(series, storms)],
    versions: {
      "host-local and static": referenceTool("plugins").version,
      whereabouts: referenceTool("whereabouts").version,
      Spiderpool: referenceTool("spiderpool").version,
      Kubernetes: referenceTool("kubernetes").version,
    },
    figures: plotsOf(figures),
    headlines: { "README.md": describeMedians(figures), "docs/why-berth.md": describeHeadline(figures) },
  };
}

const NOTES = [
  "Milliseconds from exec to exit, as a runtime sees them. Everything is on one machine: the API server, etcd and all daemons share its processors. The pods of a round are created before its ADDs and deleted after its DELs, which is not measured; of a storm, the creation counts.",
  "host-local, static and Berth without a cluster share nothing between nodes; whereabouts, Spiderpool and Berth in a cluster do.",
  "Spiderpool's daemon is its agent; its controller runs, too. whereabouts has none in the path of a pod. Spiderpool's webhooks are not registered, which spares it some requests of its own. A released address is free again at once, as the peers have no cooldown.",
  "The requests were counted in a proxy, of pods one after the other, without watches. Berth's objects are deleted after the answer to a DEL, which is waited for.",
  'In a storm two ADDs are under way on each node; Berth and Spiderpool have an agent for each node, whereabouts the node\'s name. A call that fails is not repeated, as a kubelet would do seconds later. After 30 s no ADD is begun any more (15 s in a quick run). "Recorded" are addresses in use by the IPAM\'s own records when all ADDs were answered, "leaked" ten seconds after the last DEL.',
  "The IPAM of kube-ovn is not measured: it is a part of kube-ovn-controller, which ends when it cannot connect to OVN's databases, and its plugin asks the daemon of a node with Open vSwitch.",
];

/**
 * The agent's metrics: as Prometheus' own tool judges them, and as a real Prometheus reads them while pods come and go.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { startPrometheus } from "../lab/prometheus.ts";
import { eventually, PATIENCE } from "../lab/waiting.ts";

const TINY = {
  "conf.yaml": CONF,
  "tiny.yaml": ipPool("tiny", "10.6.0.0/24", { ips: ["10.6.0.10-10.6.0.13"], default: true }),
};
const LISTENING = { args: ["--metrics-listen", "127.0.0.1:0"] };

/** Returns the URL of the metrics from the agent's log. */
async function urlOf(world: NetnsWorld): Promise<string> {
  const find = () => /"metrics":"(?<url>http[^"]+)"/.exec(world.agent.stderr())?.groups?.url ?? "";
  return eventually(
    async () => find(),
    (url) => url !== "",
  );
}

const read = async (world: NetnsWorld): Promise<string> => (await world.agent.request("/metrics")).body;

const seriesValue = (text: string, series: string): number | undefined => {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
};

it("the metrics of a run satisfy promtool, the same on the socket and on loopback", () =>
  withWorld(
    TINY,
    async (world) => {
      await world.add("a");
      await world.refused("CHECK", "never");
      await world.del("a");
      const text = await read(world);
      const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
      expect([status, stdout, stderr]).toEqual([0, "", ""]);
      const answer = await fetch(`${await urlOf(world)}/metrics`);
      expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
      const names = (of: string) => [...of.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
      expect(names(await answer.text())).toEqual(names(text));
      expect((await fetch(`${await urlOf(world)}/v1/health`)).status).toBe(404);
      // A page of another site, whose name leads to loopback.
      const { hostname, port } = new URL(await urlOf(world));
      const [foreign] = await once(
        get({ hostname, port, path: "/metrics", headers: { host: `attacker.example:${port}` } }),
        "response",
      );
      expect(foreign.resume().statusCode).toBe(421);
    },
    LISTENING,
  ));

it("calls, claims, addresses and the spool are counted", () =>
  withWorld(TINY, async (world) => {
    for (const id of ["a", "b"]) await world.add(id);
    await world.add("a");
    await world.del("a");
    await world.refused("ADD", "c", { conf: { cniVersion: "9.9.9" } });
    const text = await eventually(
      () => read(world),
      (found) => seriesValue(found, 'berth_node_addresses{state="bound"}') === 1,
    );
    const values = [
      'berth_cni_requests_total{plugin="berth",command="ADD",code="0"}',
      'berth_cni_requests_total{plugin="berth",command="DEL",code="0"}',
      'berth_cni_requests_total{plugin="berth",command="ADD",code="1"}',
      'berth_cni_request_duration_seconds_count{plugin="berth",command="ADD"}',
      'berth_claims_total{outcome="bound"}',
      "berth_claim_duration_seconds_count",
      'berth_pool_size_addresses{pool="tiny",family="IPv4"}',
      'berth_pool_addresses{pool="tiny",family="IPv4",state="bound"}',
      'berth_spool_files{state="waiting"}',
      "berth_agent_ready",
      "berth_cni_requests_in_progress",
    ].map((series) => seriesValue(text, series));
    expect(values).toEqual([3, 1, 1, 4, 3, 3, 4, 1, 0, 1, 0]);
  }));

it("a real Prometheus reads pools and calls, and the alert of a full pool fires and ends", () =>
  withWorld(
    TINY,
    async (world) => {
      // As shipped, but without the time for which a condition has to last.
      const file = readFileSync(join(root, "deploy", "chart", "berth", "files", "alerts.yaml"), "utf8");
      const rules = file.replaceAll(/for: \d+m/g, "for: 0s");
      const prometheus = await startPrometheus({ targets: [{ job: "berth-agent", url: await urlOf(world) }], rules });
      try {
        const free = async () => (await prometheus.query('berth_pool_addresses{pool="tiny",state="free"}'))[0]?.value;
        const firing = async () => {
          const alerts = await prometheus.alerts();
          return alerts.filter(({ labels }) => labels.pool === "tiny").map(({ name }) => name);
        };
        expect(await eventually(free, (value) => value === 4, 30_000)).toBe(4);
        expect(await firing()).toEqual([]);
        for (const id of ["a", "b", "c", "d"]) await world.add(id);
        expect(await eventually(free, (value) => value === 0, 30_000)).toBe(0);
        const both = ["BerthPoolFull", "BerthPoolNearlyFull"];
        expect((await eventually(firing, (names) => names.length === 2, 30_000)).sort()).toEqual(both);
        await world.refused("ADD", "e");
        const refused = 'berth_cni_requests_total{command="ADD",code="101"}';
        await expect.poll(async () => (await prometheus.query(refused))[0]?.value, PATIENCE).toBe(1);
        for (const id of ["a", "b"]) await world.del(id);
        expect(await eventually(firing, (names) => names.length === 0, 60_000)).toEqual([]);
        const [info] = await prometheus.query("berth_build_info * on (job) group_left count by (job) (up == 1)");
        expect(info).toMatchObject({ labels: { job: "berth-agent", mode: "embedded" }, value: 1 });
      } finally {
        await prometheus.stop();
      }
    },
    LISTENING,
  ));

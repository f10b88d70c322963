/**
 * A real Prometheus, of Debian's package, that scrapes a test's programs.
 *
 *   const targets = [{ job: "agent", url: "http://127.0.0.1:9473" }];
 *   const prometheus = await startPrometheus({ targets, rules: text });
 *   await prometheus.query('berth_pool_addresses{state="free"}');   // [{ labels: { pool: "blue", … }, value: 3 }]
 *   await prometheus.alerts();   // [{ name: "BerthPoolNearlyFull", state: "firing", labels }]
 *   await prometheus.stop();
 *
 * Effects: a child, a folder below the system's temporary folder, a port on loopback.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDaemon } from "./daemon.ts";
import { findPort } from "./free-port.ts";

const READY_MS = 60_000;

export interface ScrapeTarget {
  readonly job: string;
  /** `https://127.0.0.1:9475`; the path is /metrics. */
  readonly url: string;
  readonly token?: string;
  /** How its certificate is verified. */
  readonly trust?: { readonly caFile: string; readonly serverName: string };
}

export interface PrometheusOptions {
  readonly targets: readonly ScrapeTarget[];
  /** A rule file. */
  readonly rules?: string;
}

export interface QueriedSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface FiringAlert {
  readonly name: string;
  readonly state: "pending" | "firing";
  readonly labels: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** Returns the samples of an instant query. Throws when Prometheus refuses the expression. */
  query(expression: string): Promise<QueriedSample[]>;
  alerts(): Promise<FiringAlert[]>;
  stop(): Promise<void>;
}

function configOf({ targets }: PrometheusOptions): object {
  return {
    global: { scrape_interval: "500ms", scrape_timeout: "500ms", evaluation_interval: "500ms" },
    rule_files: ["rules.yaml"],
    scrape_configs: targets.map(({ job, url, token, trust }) => {
      const { protocol, host } = new URL(url);
      return {
        job_name: job,
        scheme: protocol.slice(0, -1),
        static_configs: [{ targets: [host] }],
        ...(trust && { tls_config: { ca_file: trust.caFile, server_name: trust.serverName } }),
        ...(token === undefined ? {} : { authorization: { credentials: token } }),
      };
    }),
  };
}

/** Resolves when it answers. */
export async function startPrometheus(options: PrometheusOptions): Promise<Prometheus> {
  const directory = await mkdtemp(join(tmpdir(), "berth-prometheus-"));
  await writeFile(join(directory, "rules.yaml"), options.rules ?? "groups: []\n");
  // YAML's superset of JSON.
  await writeFile(join(directory, "prometheus.yaml"), JSON.stringify(configOf(options)));
  const address = `127.0.0.1:${await findPort()}`;
  const daemon = await startDaemon("prometheus", [
    "prometheus",
    `--config.file=${join(directory, "prometheus.yaml")}`,
    `--storage.tsdb.path=${join(directory, "data")}`,
    `--web.listen-address=${address}`,
    "--log.level=warn",
  ]);
  const stop = async (): Promise<void> => {
    await daemon.kill();
    await rm(directory, { recursive: true, force: true });
  };
  const ask = async (path: string): Promise<unknown> => {
    const answer = await fetch(`http://${address}${path}`);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`GET ${path} failed with ${answer.status}: ${text}`);
    return JSON.parse(text).data;
  };
  try {
    await daemon.until(async () => (await fetch(`http://${address}/-/ready`)).ok, READY_MS);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    query: async (expression) => {
      const { result } = (await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)) as {
        result: { metric: Record<string, string>; value: [number, string] }[];
      };
      return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
    },
    alerts: async () => {
      const { alerts } = (await ask("/api/v1/alerts")) as {
        alerts: { labels: Record<string, string>; state: FiringAlert["state"] }[];
      };
      return alerts.map(({ labels, state }) => ({ name: labels.alertname ?? "", state, labels }));
    },
    stop,
  };
}

/** GET /metrics for Prometheus, on an address of its own; of an agent in a cluster also what the controller's address map asks. */
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { messageOf } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";
import { CallerAccess, type Right } from "./caller-access.ts";
import {
  answerJson,
  type HttpAnswer,
  type HttpListener,
  type ListenAddress,
  listenHttp,
  type TlsFiles,
} from "./listen.ts";
import { METRICS_TYPE, type MetricSet } from "./metric.ts";

/** What agents answer to the controller, for users of the address map. */
const QUESTION_PATHS = ["/v1/explain", "/v1/history"] as const;

/** Audience of the tokens for {@link QUESTION_PATHS}: the API server takes no token of it, so that an agent cannot use one. */
export const AGENTS_AUDIENCE = "berth-agents";

function mayGet(path: string): Right {
  return { nonResourceAttributes: { path, verb: "get" } };
}

/** Where to serve metrics, and to whom. */
export interface ScrapeSettings {
  readonly address: ListenAddress;
  readonly tls: TlsFiles | undefined;
  /** Other machines may scrape without TLS and without a token. */
  readonly isInsecure: boolean;
}

interface ScrapeServerOptions extends ScrapeSettings {
  readonly metrics: Pick<MetricSet<never>, "render">;
  /** Answers {@link QUESTION_PATHS}, with their queries. Asked only for callers whose token is reviewed. */
  readonly answer?: ((url: string) => Promise<{ readonly status: number; readonly body: string }>) | undefined;
  /** Reviews tokens; undefined without a cluster. */
  readonly api: Pick<KubeApi, "call"> | undefined;
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly log: Log;
}

/** Returns why these settings would show metrics to anyone on the network, and what to do: a clause. Undefined if they do not. */
export function findExposure(
  { address, tls, isInsecure }: ScrapeSettings,
  { hasCluster }: { readonly hasCluster: boolean },
): string | undefined {
  if (address.kind !== "network" || isInsecure) return undefined;
  if (!hasCluster)
    return "without a cluster nothing reviews the tokens of other machines; listen on 127.0.0.1 or a unix socket, or pass --metrics-insecure";
  if (tls === undefined)
    return "other machines scrape over TLS only; pass --metrics-cert-file and --metrics-key-file, listen on 127.0.0.1 or a unix socket, or pass --metrics-insecure";
  return undefined;
}

/** Rejects if the address is in use, or the certificate cannot be read. */
export function listenForScrapes(options: ScrapeServerOptions): Promise<HttpListener> {
  const { address, tls, isInsecure, metrics, api, nowMs, log, answer } = options;
  const isOpen = address.kind !== "network" || isInsecure;
  const open = (audience?: string) =>
    isOpen || api === undefined ? undefined : new CallerAccess(api, nowMs, audience);
  const [scrapers, askers] = [open(), open(AGENTS_AUDIENCE)];
  return listenHttp({
    address,
    tls,
    answer: async (path, { headers, url = "" }) => {
      const caller = { authorization: headers.authorization, path, log };
      if (answer !== undefined && askers !== undefined && QUESTION_PATHS.some((each) => each === path)) {
        const refusal = await refusalOf(askers, caller);
        return refusal ?? { type: "application/json", ...(await answer(url)) };
      }
      if (path !== "/metrics") return answerJson(404, { error: "There is only GET /metrics" });
      const refusal = isOpen ? undefined : await refusalOf(scrapers, caller);
      return refusal ?? { status: 200, type: METRICS_TYPE, body: await metrics.render() };
    },
  });
}

interface Caller {
  readonly authorization: string | undefined;
  readonly path: string;
  readonly log: Log;
}

async function refusalOf(
  access: CallerAccess | undefined,
  { authorization, path, log }: Caller,
): Promise<HttpAnswer | undefined> {
  try {
    switch (await access?.check(authorization, mayGet(path))) {
      case "allowed":
        return undefined;
      case "refused":
        return answerJson(403, { error: `The user of the token may not "get" the path ${path}` });
      case "busy":
        return answerJson(503, { error: "Too many tokens are being reviewed; try again" });
      default:
        return answerJson(401, { error: "A bearer token of the cluster is needed" });
    }
  } catch (error) {
    log.debug({ err: error }, "Reviewing the token of a caller failed");
    return answerJson(503, { error: `The API server did not review the token: ${messageOf(error)}` });
  }
}

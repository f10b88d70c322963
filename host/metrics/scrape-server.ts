/** GET /metrics for Prometheus, on its own address; an agent in a cluster also answers the controller's map there. */
import type { KubeApi } from "../kubernetes/kube-api.ts";
import type { Log } from "../lib/log.ts";
import { CallerAccess, callerOf } from "./caller-access.ts";
import { answerJson, type HttpListener, isOpen, listenHttp, type ServerSettings } from "./listen.ts";
import { METRICS_TYPE, type MetricSet } from "./metric.ts";

/** Paths of agents' answers to the controller, for users of the address map. */
const QUESTION_PATHS = ["/v1/explain", "/v1/history"] as const;

/** Audience of the tokens for {@link QUESTION_PATHS}: the API server rejects it, so agents cannot use them. */
export const AGENTS_AUDIENCE = "berth-agents";

interface ScrapeServerOptions extends ServerSettings {
  readonly metrics: Pick<MetricSet<never>, "render">;
  /** Answers {@link QUESTION_PATHS}, with their queries. Asked only for callers whose token is reviewed. */
  readonly answer?:
    | ((url: string, signal: AbortSignal) => Promise<{ readonly status: number; readonly body: string }>)
    | undefined;
  /** Reviews tokens; undefined without a cluster. */
  readonly api: Pick<KubeApi, "call"> | undefined;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** Rejects if the address is in use, or a certificate that is there cannot be used. */
export function listenForScrapes(options: ScrapeServerOptions): Promise<HttpListener> {
  const { address, tls, metrics, answer, ...rest } = options;
  const scrapers = new CallerAccess({ address, ...rest });
  const hasQuestions = answer !== undefined && options.api !== undefined && !isOpen(options);
  const askers = new CallerAccess({ address, ...rest, audience: AGENTS_AUDIENCE });
  return listenHttp({
    address,
    tls,
    log: options.log,
    answer: async (path, { request, signal }) => {
      const caller = callerOf(request);
      const right = { nonResourceAttributes: { path, verb: "get" } };
      const forbidden = `The user of the token may not "get" the path ${path}`;
      if (hasQuestions && QUESTION_PATHS.some((each) => each === path)) {
        const refusal = await askers.refusal(caller, right, forbidden);
        return refusal ?? { type: "application/json", ...(await answer(request.url ?? "", signal)) };
      }
      if (path !== "/metrics") return answerJson(404, { error: "There is only GET /metrics" });
      const refusal = await scrapers.refusal(caller, right, forbidden);
      return refusal ?? { status: 200, type: METRICS_TYPE, body: await metrics.render() };
    },
  });
}

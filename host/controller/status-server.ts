/** GET /v1/status, /healthz, /readyz and /metrics of the controller. Other machines see only its health. */
import type { CONTROLLER_METRICS } from "../metrics/controller-metrics.ts";
import { answerJson, type HttpAnswer, type HttpListener, type ListenAddress, listenHttp } from "../metrics/listen.ts";
import { METRICS_TYPE, type MetricSet } from "../metrics/metric.ts";
import type { ControllerProcess } from "./controller-process.ts";

interface StatusServerOptions {
  readonly address: ListenAddress;
  readonly controller: Pick<ControllerProcess, "status" | "stuck" | "waiting">;
  readonly version: string;
  readonly metrics: Pick<MetricSet<typeof CONTROLLER_METRICS>, "render">;
}

/** Rejects if the address is in use. */
export function listenForQuestions(options: StatusServerOptions): Promise<HttpListener> {
  return listenHttp({ address: options.address, answer: (path) => answer(options, path) });
}

async function answer(
  { address, controller, version, metrics }: StatusServerOptions,
  path: string,
): Promise<HttpAnswer> {
  // Tells only whether a restart would help: an API server that does not answer is no reason.
  if (path === "/healthz") return health(controller.stuck);
  if (path === "/readyz") return health(controller.stuck ?? controller.waiting);
  const isLocal = address.kind !== "network";
  if (isLocal && path === "/v1/status") return answerJson(200, { version, ...controller.status });
  if (isLocal && path === "/metrics") return { status: 200, type: METRICS_TYPE, body: await metrics.render() };
  const served = isLocal
    ? "GET /v1/status, GET /healthz, GET /readyz, GET /metrics"
    : "GET /healthz, GET /readyz, and more on loopback only";
  return answerJson(404, { error: `${path.slice(0, 80)} is not served; there are ${served}` });
}

function health(problem: string | undefined): HttpAnswer {
  const type = "text/plain";
  return problem === undefined ? { status: 200, type, body: "ok\n" } : { status: 503, type, body: `${problem}\n` };
}

/**
 * The process of `berth-controller`: options and environment in, a candidate for the lease until a signal stops it.
 * Exits with 0 after a stop, with 1 when it cannot start, with 2 on wrong usage.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { startCertificates } from "../controller/certificates/certificates-controller.ts";
import { openController } from "../controller/controller-process.ts";
import { CONTROLLERS, LETTING_GO } from "../controller/controllers.ts";
import type { Controllers } from "../controller/leadership.ts";
import { listenForQuestions } from "../controller/status-server.ts";
import { openSend } from "../kernel/descriptor.ts";
import { openKubeClient } from "../kubernetes/client.ts";
import { loadCredentials } from "../kubernetes/credentials.ts";
import { findTimingFault } from "../kubernetes/lease/plan-lease.ts";
import { openLog } from "../lib/log.ts";
import { collectApi, collectProcess, measureEventLoop } from "../metrics/common-metrics.ts";
import { CONTROLLER_METRICS } from "../metrics/controller-metrics.ts";
import { MetricSet } from "../metrics/metric.ts";
import { listenForScrapes } from "../metrics/scrape-server.ts";
import { addClusterCommands } from "./cluster-commands.ts";
import { type ControllerFlags, describeController } from "./controller-options.ts";
import { readExtensions } from "./extensions.ts";
import { endsOnUsage, openLife, refuseUsage } from "./life.ts";
import { scrapeSettingsOf } from "./metrics-options.ts";
import { VERSION } from "./version.ts";

const extensions = await readExtensions();
const program = describeController();
for (const { addControllerOptions } of extensions) await addControllerOptions?.(program);
addClusterCommands(endsOnUsage(program).enablePositionalOptions().action(serve));
await program.parseAsync();

function controllersOf(flags: ControllerFlags): Controllers {
  const { authoritySecret: authority, certificateSecret: servers, leaseNamespace, finalizers } = flags;
  if ((authority === undefined) !== (servers.length === 0))
    refuseUsage("--authority-secret and --certificate-secret belong together, found one of them");
  const controllers = finalizers ? CONTROLLERS : LETTING_GO;
  if (authority === undefined) return controllers;
  const lifetimeMs = flags.certificateLifetime * 86_400_000;
  const certificates = startCertificates({ namespace: leaseNamespace, authority, servers, lifetimeMs });
  return { ...controllers, certificates };
}

async function serve(flags: ControllerFlags): Promise<void> {
  const { kubeconfig, inCluster, configNamespace } = flags;
  const ways = [kubeconfig, inCluster].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    const found = ways.length === 0 ? "none" : "both";
    refuseUsage(`expected exactly one of --kubeconfig (BERTH_KUBECONFIG) and --in-cluster, found ${found}`);
  }
  const timings = {
    durationMs: flags.leaseDuration * 1000,
    renewDeadlineMs: flags.leaseRenewDeadline * 1000,
    retryMs: flags.leaseRetry * 1000,
  };
  const scraping = scrapeSettingsOf(flags, true, refuseUsage);
  const found = await Promise.all(extensions.map((each) => each.controllerServer?.(flags, refuseUsage)));
  const servers = found.filter((server) => server !== undefined);
  const opened = await Promise.all(extensions.map((each) => each.openControllers?.(flags, refuseUsage)));
  const more = opened.filter((each) => each !== undefined);
  const controllers = Object.assign({}, controllersOf(flags), ...more.map((each) => each.controllers)) as Controllers;
  const fault = findTimingFault(timings);
  if (fault !== undefined) refuseUsage(`the lease cannot be held: ${fault}`);

  const log = openLog("berth-controller", flags.logLevel, { send: openSend(2), format: flags.logFormat });
  const life = openLife(log);

  async function start() {
    const credentials = await loadCredentials({ kubeconfig });
    const api = openKubeClient({ credentials, userAgent: "berth-controller", random: Math.random });
    // Two lives of one pod are two candidates.
    const identity = `${flags.identity}_${randomBytes(8).toString("hex")}`;
    const controller = openController({
      ...{ api, controllers, configNamespace, random: Math.random, log },
      lease: { namespace: flags.leaseNamespace, name: flags.leaseName, identity, timings },
      clock: { nowMs: () => performance.now(), pause: (waitMs, signal) => sleep(waitMs, undefined, { signal }) },
      now: () => new Date(),
      connectionProblem: () => credentials.problem ?? more.find(({ problem }) => problem !== undefined)?.problem,
    });
    const set = new MetricSet(CONTROLLER_METRICS, (text, error) => log.warn({ err: error }, text));
    set.metrics.buildInfo.set({ version: VERSION, nodejs: process.versions.node, mode: "cluster" }, 1);
    const endMeasuring = measureEventLoop(set.metrics);
    set.onScrape(() => collectProcess(set.metrics));
    set.onScrape(() => collectApi(set.metrics, api.stats, api.requests));
    set.onScrape(() => controller.collectMetrics(set.metrics));
    for (const { addMetrics } of extensions) await addMetrics?.(set, () => controller.measurements);
    const questions = await listenForQuestions({ address: flags.listen, controller, version: VERSION, metrics: set });
    const nowMs = () => performance.now();
    const scrapes = await listenForScrapes({ ...scraping, metrics: set, api, nowMs, log });
    const parts = { api, caches: controller.caches, version: VERSION, nowMs, log };
    const served = await Promise.all(servers.map(async ({ name, listen }) => [name, await listen(parts)] as const));
    const urls = Object.fromEntries(served.map(([name, { url }]) => [name, url]));
    const { server } = credentials;
    log.info({ identity, server, listen: questions.url, metrics: scrapes.url, ...urls, version: VERSION }, "Started");
    return {
      stop: async () => {
        endMeasuring();
        await controller.close();
        await questions.close();
        await scrapes.close();
        await Promise.all(served.map(([, listener]) => listener.close()));
        await Promise.all(more.map((each) => each.close?.()));
        await api.close();
      },
    };
  }

  const running = await start().catch(life.die);
  life.stop = () => running.stop();
}

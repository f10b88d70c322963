/**
 * The netavark driver: does in the agent the work of a CNI runtime with the plugins of a network's list. It makes the
 * NIC itself; a host with Podman 5 need not have main plugins.
 */
import type { CniPlugins, DriverPlugin } from "../../host/agent/request/driver.ts";
import type { Addition, Assigned } from "../../host/agent/request/plugin.ts";
import { CniError, ErrorCode } from "../../host/cni/error.ts";
import { type AttachRequest, type DetachRequest, isCoordinator, isIfacer } from "../../host/cni/request.ts";
import type { CniResult } from "../../host/cni/result.ts";
import type { PlacedEntry } from "../../host/config/network-definition.ts";
import { messageOf } from "../../host/lib/describe.ts";
import type { Allocation } from "../../host/registry/registry.ts";
import { configureNic, createNic, deleteNic, routesFor } from "./nic.ts";
import { completeNetwork, entriesOf, formatStatus, translateCall } from "./translate.ts";

type Entry = PlacedEntry["entry"];

const pluginOf = ({ type }: Entry): keyof CniPlugins =>
  isCoordinator(type) ? "coordinator" : isIfacer(type) ? "ifacer" : "berth";

/** Returns the request for one plugin of the list, as a runtime would send it. */
function requestFor<T extends AttachRequest | DetachRequest>(request: T, entry: Entry, prevResult?: CniResult): T {
  const { netConf } = request;
  const { cniVersion, name } = netConf;
  const raw = { ...entry, cniVersion, name };
  return {
    ...request,
    plugin: pluginOf(entry),
    netConf: { ...netConf, type: entry.type, ipam: entry.ipam, raw, prevResult },
  };
}

/** Progress of a setup. `undo` is called from the last to the first. */
interface Progress {
  result: CniResult | undefined;
  assigned: Assigned | undefined;
  readonly undo: Addition["undo"][];
}

export class NetavarkDriver implements DriverPlugin {
  readonly answer = completeNetwork;
  readonly translate = translateCall;
  readonly formatResult = formatStatus;
  readonly check = refuse;
  readonly gc = refuse;
  readonly status = refuse;
  readonly #plugins: CniPlugins;

  constructor(plugins: CniPlugins) {
    this.#plugins = plugins;
  }

  /** All or nothing: netavark tears nothing down after a refusal. */
  async add(request: AttachRequest, signal: AbortSignal): Promise<Addition> {
    const progress: Progress = { result: undefined, assigned: undefined, undo: [] };
    const undo = async (): Promise<void> => {
      for (const step of progress.undo.reverse().splice(0)) await step();
    };
    try {
      for (const entry of entriesOf(request.netConf.raw)) {
        if (pluginOf(entry) === "berth") await this.#attach(request, entry, progress, signal);
        else await this.#call(request, entry, progress, signal);
      }
    } catch (error) {
      await undo();
      throw error;
    }
    const { result = { interfaces: [], ips: [], routes: [] }, assigned } = progress;
    return { result, undo, ...(assigned === undefined ? {} : { assigned }) };
  }

  async #call(request: AttachRequest, entry: Entry, progress: Progress, signal: AbortSignal): Promise<CniResult> {
    const plugin = pluginOf(entry);
    const addition = await this.#plugins[plugin].add(requestFor(request, entry, progress.result), signal);
    // The address is free only when the NIC that has it is gone.
    progress.undo[plugin === "berth" ? "unshift" : "push"](addition.undo);
    progress.assigned ??= addition.assigned;
    // The ifacer's result, a device of the node, is none of the container's.
    if (plugin === "coordinator") progress.result = addition.result;
    return addition.result;
  }

  /** The NIC, then its addresses, which may be probed on it. */
  async #attach(request: AttachRequest, entry: Entry, progress: Progress, signal: AbortSignal): Promise<void> {
    const { netns: sandbox, ifName: name, netConf } = request;
    const mac = createNic(request, entry, netConf.runtimeConfig.mac);
    progress.undo.push(() => deleteNic(request, undefined));
    const found = await this.#call(request, entry, progress, signal);
    const ips = found.ips.map((ip) => ({ ...ip, interface: 0 }));
    progress.result = { ...found, interfaces: [{ name, mac, sandbox }], ips, routes: routesFor(found.routes, entry) };
    await configureNic(request, progress.result, signal);
  }

  /** Every step is tried. A failure may pass by itself: the shim keeps the call in the spool. */
  async del(request: DetachRequest): Promise<readonly Allocation[]> {
    const failures: unknown[] = [];
    const released: Allocation[] = [];
    for (const entry of [...entriesOf(request.netConf.raw)].reverse()) {
      const plugin = pluginOf(entry);
      try {
        const rows = await this.#plugins[plugin].del(requestFor(request, entry));
        released.push(...rows);
        const { netns, ifName } = request;
        if (plugin !== "berth" || netns === undefined) continue;
        await deleteNic(
          { netns, ifName },
          rows.map(({ ip }) => ip),
        );
      } catch (error) {
        failures.push(error);
      }
    }
    const [first] = failures;
    if (first !== undefined) throw new CniError(ErrorCode.TryAgainLater, messageOf(first), { cause: first });
    return released;
  }
}

/** Netavark has no such commands, so that translateCall lets none pass. */
function refuse(): Promise<never> {
  return Promise.reject(new CniError(ErrorCode.InvalidEnvironment, "The netavark driver has setup and teardown only"));
}

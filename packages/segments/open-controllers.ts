/** The controllers of hub and IPAM of record, by the options of `berth-controller`. */
import type { Controllers } from "../../host/controller/leadership.ts";
import type { MoreControllers, Refuse } from "../../host/extension.ts";
import { messageOf } from "../../host/lib/describe.ts";
import { HubConnection } from "./blocks/hub-connection.ts";
import { startBlocks } from "./controllers/blocks-controller.ts";
import { startRecords } from "./controllers/records-controller.ts";
import type { SegmentFlags } from "./options.ts";
import { HttpClient } from "./record-server/http-client.ts";
import { NAUTOBOT } from "./record-server/nautobot-addresses.ts";
import { NETBOX } from "./record-server/netbox-addresses.ts";
import { RestAddresses } from "./record-server/rest-addresses.ts";
import type { RecordServerAccess } from "./types.ts";

const USER_AGENT = "berth-controller";

/** Calls `refuse` with a clause if the options contradict each other. Nothing is asked before a controller starts. */
export function openControllers(flags: SegmentFlags, refuse: Refuse): MoreControllers {
  const connection = openHub(flags, refuse);
  const hub = connection && { ...connection, namespace: flags.configNamespace };
  const recordServer = recordServerOf(flags, refuse);
  return {
    controllers: {
      blocks: (deps) => startBlocks({ ...deps, hub, recordServer }),
      ...recordsOf(flags, recordServer, refuse),
    },
    get problem() {
      return hub?.api.problem ?? recordServer?.client.problem;
    },
    close: async () => {
      await hub?.api.close();
      await recordServer?.client.close();
    },
  };
}

/** Returns undefined if there is no hub. */
function openHub({ hubKubeconfig: kubeconfig, hubMember: member }: SegmentFlags, refuse: Refuse) {
  if ((kubeconfig === undefined) !== (member === undefined))
    refuse("--hub-kubeconfig and --hub-member belong together, found one of them");
  if (kubeconfig === undefined || member === undefined) return undefined;
  return { api: new HubConnection({ kubeconfig, userAgent: USER_AGENT, random: Math.random }), member };
}

/** Returns undefined without --records-server. */
function recordServerOf(flags: SegmentFlags, refuse: Refuse): RecordServerAccess | undefined {
  const { recordsServer: product, recordsUrl: url, recordsTokenFile: tokenFile, recordsCluster: cluster } = flags;
  if (product === undefined) return undefined;
  if (url === undefined || tokenFile === undefined || cluster === undefined)
    refuse("--records-server needs --records-url, --records-token-file and --records-cluster");
  const usual = new Map([["", product === "nautobot" ? "Global" : ""]]);
  const spaces = flags.recordsSpace.size > 0 ? flags.recordsSpace : usual;
  const common = { product, cluster, spaces, namespace: flags.configNamespace };
  try {
    const address = { url, tokenFile, caFile: flags.recordsCaFile };
    return { ...common, client: new HttpClient({ ...address, userAgent: USER_AGENT }) };
  } catch (error) {
    return refuse(messageOf(error));
  }
}

function recordsOf(flags: SegmentFlags, server: RecordServerAccess | undefined, refuse: Refuse): Controllers {
  if (flags.recordsAddresses === undefined) return {};
  if (server === undefined) refuse("--records-addresses needs --records-server");
  const { product, cluster, client, spaces } = server;
  const dialect = product === "nautobot" ? NAUTOBOT : NETBOX;
  const common = { client, dialect, tag: flags.recordsTag, spaces: [...spaces.values()] };
  const open = (uid: string) => new RestAddresses({ ...common, cluster: uid });
  const { recordsDomain: domain, recordsInterval } = flags;
  return { records: startRecords({ open, cluster, domain, spaces, intervalMs: recordsInterval * 1_000 }) };
}

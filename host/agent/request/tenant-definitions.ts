/**
 * `tenantDefinitions: closed` of vendor-conf: uses that only the administrator's network definitions may have, those of
 * the node's directory and of vendor-conf's namespace. Only ADD asks: existing attachments stay, and a DEL is never
 * refused.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { usesOf } from "../../config/tenant-uses.ts";
import { closedTo, type VendorConf } from "../../config/vendor-conf.ts";
import type { PodSubject } from "../../ipam/model.ts";
import type { NicNetwork } from "./nic-definition.ts";
import type { Plugin } from "./plugin.ts";

interface TenantDefinitionsDeps {
  /** Resolves when the settings are known. Rejects as an ADD does that waits in vain. */
  readonly synced: (signal: AbortSignal) => Promise<void>;
  readonly vendorConf: () => VendorConf;
  readonly identifier: {
    recognize(request: AttachRequest, signal: AbortSignal): Promise<{ readonly subject?: PodSubject | undefined }>;
  };
  readonly nicsOf: (pod: PodSubject) => readonly Pick<NicNetwork, "ifName" | "attachment">[];
}

/**
 * Returns the plugin with an ADD that throws CniError 7 for a tenant's definition that uses any of that. `type`: its
 * name in definitions.
 */
export function closeToTenants(plugin: Plugin, type: string, deps: TenantDefinitionsDeps): Plugin {
  return {
    ...plugin,
    add: async (request, signal) => {
      const [use] = usesOf(type, request.netConf.raw);
      if (use !== undefined) await requireAdministrators(request, { ...deps, use }, signal);
      return plugin.add(request, signal);
    },
  };
}

async function requireAdministrators(
  request: AttachRequest,
  { synced, vendorConf, identifier, nicsOf, use }: TenantDefinitionsDeps & { readonly use: string },
  signal: AbortSignal,
): Promise<void> {
  // The plugin's own permissions are in the settings, too.
  await synced(signal);
  const home = closedTo(vendorConf());
  if (home === undefined) return;
  const { subject } = await identifier.recognize(request, signal);
  // Without a pod the caller is root of the node.
  if (subject === undefined) return;
  const nic = nicsOf(subject).find(({ ifName }) => ifName === request.ifName);
  if (nic !== undefined && (nic.attachment === undefined || nic.attachment.startsWith(`${home}/`))) return;
  const whose = !nic?.attachment ? "which the pod's annotations do not name" : `${nic.attachment} of another namespace`;
  throw new CniError(
    ErrorCode.InvalidNetworkConfig,
    `Interface "${request.ifName}": its network definition, ${whose}, uses ${use}; "tenantDefinitions" of vendor-conf is closed, so only definitions of namespace "${home}" and of the node may; ask an administrator`,
  );
}

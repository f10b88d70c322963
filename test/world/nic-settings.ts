/** NICs with only the settings of their request. */
import type { NicSettings } from "../../host/agent/request/nic-definition.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../host/config/coordinator-settings.ts";

export const nicSettings: NicSettings = {
  definitionOf: () => ({ networkNames: undefined, settings: DEFAULT_COORDINATOR_CONF, isCoordinated: false }),
  nicsOf: () => [{ ifName: "eth0", network: "", plugins: [] }],
  pluginsOf: () => undefined,
};

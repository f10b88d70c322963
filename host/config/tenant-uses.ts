/** The uses in an entry of a network definition that `tenantDefinitions: closed` of vendor-conf denies to tenants. */
import { isCoordinator, isIfacer } from "../cni/request.ts";

/** Returns words for an error. `type`: the plugin of the entry. */
export function usesOf(
  type: string,
  { hostRuleTable, logOptions }: Readonly<Record<string, unknown>>,
): readonly string[] {
  if (isIfacer(type)) return ['the plugin "ifacer"'];
  if (!isCoordinator(type)) return [];
  return [
    ...(hostRuleTable === undefined ? [] : ['"hostRuleTable"']),
    ...(typeof logOptions === "object" && logOptions !== null && "logFile" in logOptions
      ? ['"logOptions.logFile"']
      : []),
  ];
}

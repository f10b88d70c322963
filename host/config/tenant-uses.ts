/** What an entry of a network definition uses that `tenantDefinitions: closed` of vendor-conf denies to tenants. */

/** Returns words for an error. `type`: the plugin of the entry. */
export function usesOf(
  type: string,
  { hostRuleTable, logOptions }: Readonly<Record<string, unknown>>,
): readonly string[] {
  if (type === "ifacer") return ['the plugin "ifacer"'];
  if (type !== "coordinator") return [];
  return [
    ...(hostRuleTable === undefined ? [] : ['"hostRuleTable"']),
    ...(typeof logOptions === "object" && logOptions !== null && "logFile" in logOptions
      ? ['"logOptions.logFile"']
      : []),
  ];
}

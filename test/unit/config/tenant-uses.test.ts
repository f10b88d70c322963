import { expect, it } from "vitest";
import { usesOf } from "../../../host/config/tenant-uses.ts";

it.each<[type: string, entry: object, wanted: readonly string[]]>([
  ["ifacer", {}, ['the plugin "ifacer"']],
  ["berth-ifacer", {}, ['the plugin "ifacer"']],
  ["coordinator", { hostRuleTable: 700 }, ['"hostRuleTable"']],
  ["berth-coordinator", { logOptions: { logFile: "/var/log/vendor/x.log" } }, ['"logOptions.logFile"']],
  ["coordinator", { mode: "underlay", logOptions: { logLevel: "debug" } }, []],
  ["macvlan", { hostRuleTable: 700 }, []],
])("%s with %j uses %j", (type, entry, wanted) => expect(usesOf(type, { ...entry })).toEqual(wanted));

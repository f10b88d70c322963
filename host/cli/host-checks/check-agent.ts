/** Turns an agent's report about itself into findings. */
import { documentation } from "../../lib/documentation.ts";
import type { HostFinding } from "../../records/check-record.ts";
import type { HealthRecord } from "../../records/health-record.ts";
import { hostError, hostWarning } from "./finding.ts";

export const START_AGENT = "Start it; its log says why it ended: journalctl -u berth-agent";
export const SEE_LOG = "Its log says more: journalctl -u berth-agent";

/** `version`: of berthctl. */
export function checkAgent({ status, problems, spool, ...agent }: HealthRecord, version: string): HostFinding[] {
  return [
    ...(status === "ready"
      ? []
      : [hostError("agent", `The agent is ${status}`, `The other findings about it say why. ${SEE_LOG}`)]),
    ...problems.map((problem) => hostError("agent", problem, `See ${documentation("troubleshooting.html")}`)),
    ...(agent.version === version
      ? []
      : [
          hostWarning(
            "agent",
            `The agent has version ${agent.version}, berthctl ${version}`,
            "Restart the agent, or update berthctl",
          ),
        ]),
    ...(spool.waiting > 0
      ? [hostWarning("agent", `${spool.waiting} DELs wait in the spool`, `The agent repeats them. ${SEE_LOG}`)]
      : []),
    ...(spool.rejected > 0
      ? [
          hostError(
            "agent",
            `${spool.rejected} spooled requests could not be read`,
            `Remove the files *.rejected in the spool directory /var/lib/berth/spool: ${documentation("develop/shim-protocol.html#spool")}`,
          ),
        ]
      : []),
  ];
}

/** Turns an agent's report about itself into findings. */
import { documentation } from "../../lib/documentation.ts";
import type { Finding } from "../../records/finding.ts";
import type { HealthRecord } from "../../records/health-record.ts";
import { error, warning } from "../finding.ts";

export const START_AGENT = "Start it; its log says why it ended: journalctl -u berth-agent";
export const SEE_LOG = "Its log says more: journalctl -u berth-agent";

/** `version`: of berthctl. */
export function checkAgent({ status, problems, spool, ...agent }: HealthRecord, version: string): Finding[] {
  return [
    ...(status === "ready"
      ? []
      : [error("agent", `The agent is ${status}`, `The other findings about it say why. ${SEE_LOG}`)]),
    ...problems.map((problem) => error("agent", problem, `See ${documentation("troubleshooting.html")}`)),
    ...(agent.version === version
      ? []
      : [
          warning(
            "agent",
            `The agent has version ${agent.version}, berthctl ${version}`,
            "Restart the agent, or update berthctl",
          ),
        ]),
    ...(spool.waiting > 0
      ? [warning("agent", `${spool.waiting} DELs wait in the spool`, `The agent repeats them. ${SEE_LOG}`)]
      : []),
    ...(spool.rejected > 0
      ? [
          error(
            "agent",
            `${spool.rejected} spooled requests could not be read`,
            `Remove the files *.rejected in the spool directory /var/lib/berth/spool: ${documentation("develop/shim-protocol.html#spool")}`,
          ),
        ]
      : []),
  ];
}

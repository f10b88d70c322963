/** Turns an agent's report about itself into findings. */
import { documentation } from "../../lib/documentation.ts";
import type { Finding } from "../../records/finding.ts";
import type { HealthRecord } from "../../records/health-record.ts";
import { error, unknown, warning } from "../problem.ts";

const START_AGENT = "Start it; its log says why it ended: journalctl -u berth-agent";
const SEE_LOG = "Its log says more: journalctl -u berth-agent";

export const AGENT_PROBLEMS = {
  notReady: error("agent", "The agent is {status}", `The other findings about it say why. ${SEE_LOG}`),
  problem: error("agent", "{problem}", `See ${documentation("troubleshooting.html")}`),
  settings: error(
    "agent",
    "{problem}",
    `Correct it: ${documentation("troubleshooting.html#vendor-conf-cannot-be-used")}`,
  ),
  otherVersion: warning(
    "agent",
    "The agent has version {agent}, berthctl {berthctl}",
    "Restart the agent, or update berthctl",
  ),
  spoolWaits: warning("agent", "{waiting} DELs wait in the spool", `The agent repeats them. ${SEE_LOG}`),
  spoolRejected: error(
    "agent",
    "{rejected} spooled requests could not be read",
    `Remove the files *.rejected in the spool directory /var/lib/berth/spool: ${documentation("develop/shim-protocol.html#spool")}`,
  ),
  refuses: error("agent", "{answer}", SEE_LOG),
  silent: unknown("not-compared", "{answer}", START_AGENT),
  notRunning: unknown("not-compared", "the agent's pod is {phase}", "See its events: kubectl describe pod"),
  otherName: unknown("not-compared", "its agent calls itself {name}", "Restart the agent"),
  unread: unknown("not-compared", "{problem}", "Check again when it can be read"),
};

/** `problems`: sentences about state that cannot be read. */
export const findUnread = (problems: readonly string[]): Finding[] =>
  problems.map((problem) => AGENT_PROBLEMS.unread({ problem }));

/** `berthctl`: its version. */
export function* checkAgent({ status, problems, spool, version }: HealthRecord, berthctl: string): Iterable<Finding> {
  if (status !== "ready") yield AGENT_PROBLEMS.notReady({ status });
  for (const problem of problems)
    yield AGENT_PROBLEMS[problem.startsWith("Of vendor-conf, ") ? "settings" : "problem"]({ problem });
  if (version !== berthctl) yield AGENT_PROBLEMS.otherVersion({ agent: version, berthctl });
  if (spool.waiting > 0) yield AGENT_PROBLEMS.spoolWaits({ waiting: spool.waiting });
  if (spool.rejected > 0) yield AGENT_PROBLEMS.spoolRejected({ rejected: spool.rejected });
}

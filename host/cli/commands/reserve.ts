/**
 * `berthctl reserve`: prints ReservedIPs with owners, for addresses that are free or theirs already. Writes nothing:
 * the output is applied, or kept in a repository.
 */
import { ConfigError } from "../../config/config-error.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { type Family, formatIp, type Ip, parseIp } from "../../net/ip.ts";
import type { ReservationRecord } from "../../records/reservation-record.ts";
import { allocationName } from "../../resources/ip-allocation.ts";
import { NO_PLACE } from "../../resources/locate-address.ts";
import { decodeReservedIp } from "../../resources/reserved-ip.ts";
import { describeOwner } from "../allocation-table.ts";
import { parseAddress, parsePod, readGiven } from "../arguments.ts";
import type { CommandLine } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";
import { isHeldFor } from "../reservations.ts";
import type { Source } from "../source.ts";
import { parseDeadline } from "../times.ts";

/** Most addresses that are looked up at once. */
const MOST_QUESTIONS = 8;

interface ReserveFlags {
  readonly for?: string;
  readonly interface?: string;
  readonly addressSpace?: string;
  readonly file?: string;
  readonly until?: string;
}

interface Wanted {
  readonly ip: Ip;
  readonly space: string;
  readonly owner: { readonly namespace: string; readonly name: string; readonly interface?: string | undefined };
}

export function addReserve(cli: CommandLine): void {
  cli
    .command("reserve", "Print ReservedIPs that keep addresses for pods or machines, which need not exist yet", [
      "reserve 10.6.0.50 --for shop/db-0",
      "reserve --file machines.csv --until 30d",
    ])
    .argument("[address]", "the address")
    .option("--for <owner>", "namespace/name of the pod, virtual machine, IPAMClaim or Deployment")
    .option("--interface <name>", "NIC of the pod; default: its first")
    .option("--address-space <name>", "address space of the pool")
    .option("--until <time>", "end: 2026-12-31T18:00:00Z, 18:00, or 30d from now; default: when it is deleted")
    .option("--file <csv>", "lines of address, owner, and if need be interface and address space (-: standard input)")
    .action((address: string | undefined, flags: ReserveFlags) =>
      cli.run({}, async ({ source, out, note }) => {
        const { until, ...rest } = flags;
        const wanted = wantedOf(address, rest);
        const end = until === undefined ? undefined : parseDeadline("--until", until).toISOString();
        const opened = await source();
        const others = (await opened.reservations()).filter(({ hasEnded }) => !hasEnded);
        const refusals = await inParallel(wanted, MOST_QUESTIONS, (each) => refuse(opened, each, others));
        const found = refusals.flatMap((refusal) => refusal ?? []);
        for (const refusal of found) note(refusal);
        if (found.length > 0) return ExitCode.Problem;
        const { stringify } = await import("yaml");
        out.text(wanted.map((each) => stringify(reservedIp(each, end))).join("---\n"));
        return ExitCode.Success;
      }),
    );
}

/** Throws UsageError. */
function wantedOf(address: string | undefined, { file, ...flags }: ReserveFlags): readonly Wanted[] {
  if (file === undefined) {
    if (address === undefined || flags.for === undefined) throw new UsageError("Give an address and --for, or --file");
    return [readWanted([address, flags.for, flags.interface, flags.addressSpace])];
  }
  if (address !== undefined || Object.values(flags).some((value) => value !== undefined))
    throw new UsageError("Give an address with its options, or --file, not both");
  const lines = readGiven("--file", file)
    .split("\n")
    .map((line) => line.trim());
  const rows = lines.flatMap((line, index) => (line === "" || line.startsWith("#") ? [] : [{ line, at: index + 1 }]));
  if (/^"?address\b/i.test(rows[0]?.line ?? "")) rows.shift();
  if (rows.length === 0) throw new UsageError(`${file}: found no line, want address and owner on each`);
  const seen = new Map<string, number>();
  return rows.map(({ line, at }) => {
    const cells = line.split(/[,;\t]/).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
    try {
      const wanted = readWanted(cells);
      for (const each of [allocationName(wanted.ip, wanted.space), nicOf(wanted.owner, wanted.ip.family)]) {
        const before = seen.get(each);
        if (before !== undefined) throw new UsageError(`found ${each}, want another one than line ${before} has`);
        seen.set(each, at);
      }
      return wanted;
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      throw new UsageError(`${file}, line ${at}: ${error.message}`);
    }
  });
}

/** Takes address, owner, interface and address space. Throws UsageError. */
function readWanted([text = "", owner = "", ifName = "", space = "", ...rest]: readonly (
  | string
  | undefined
)[]): Wanted {
  if (rest.length > 0) throw new UsageError(`found ${rest.length + 4} cells, want at most 4`);
  const ip = parseIp(parseAddress(text));
  if (ip === undefined || !owner.includes("/"))
    throw new UsageError(`Expected an owner as namespace/name, found ${JSON.stringify(owner)}`);
  const wanted = { ip, space, owner: { ...parsePod(owner, undefined), interface: ifName || undefined } };
  try {
    decodeReservedIp(reservedIp(wanted), "The reservation");
    return wanted;
  } catch (error) {
    throw error instanceof ConfigError ? new UsageError(error.message) : error;
  }
}

function reservedIp({ ip, space, owner }: Wanted, until?: string): object {
  return {
    apiVersion: "ipam.vendor.io/v1",
    kind: "ReservedIP",
    metadata: { name: allocationName(ip, space) },
    spec: { ips: [formatIp(ip)], addressSpace: space || undefined, owner, until },
  };
}

/** A NIC gets one address of the family. */
function nicOf({ namespace, name, interface: nic }: Wanted["owner"], family: Family): string {
  return `${namespace}/${name} (IPv${family} of ${nic === undefined ? "its first NIC" : `NIC ${nic}`})`;
}

/** Returns why the address cannot be kept for its owner; undefined if it can. `others`: the reservations in force. */
async function refuse(
  source: Source,
  { ip, space, owner }: Wanted,
  others: readonly ReservationRecord[],
): Promise<string | undefined> {
  const address = formatIp(ip);
  const { places, allocations } = await source.address(address);
  const inSpace = places.filter(({ addressSpace }) => addressSpace === space);
  const whose = `${owner.namespace}/${owner.name}`;
  // A reservation without an owner gives way to one with.
  const whyNot = ({ excluded, reserved }: (typeof places)[number]): string | undefined =>
    reserved !== undefined && (reserved.owner ?? whose) === whose ? reserved.excluded : excluded;
  const [place] = inSpace;
  if (place === undefined) return `${address}: ${NO_PLACE}`;
  if (inSpace.every((each) => whyNot(each) !== undefined))
    return `${address}: pool ${place.pool} never gives it to ${whose}: ${whyNot(place)}`;
  const nic = nicOf(owner, ip.family);
  const isOther = ({ ips: [text = ""], owner: its }: ReservationRecord): boolean =>
    its !== undefined && text !== address && nicOf(its, parseIp(text)?.family ?? 4) === nic;
  const other = others.find(isOther);
  if (other !== undefined)
    return `${address}: ReservedIP "${other.name}" has ${other.ips[0]} for ${nic}; delete that first`;
  const record = allocations.find(({ addressSpace, state }) => addressSpace === space && state !== "Cooling");
  if (record === undefined || isHeldFor(record, owner)) return undefined;
  const to = record.state === "Bound" ? "to" : "for";
  return `${address}: it is ${record.state} ${to} ${describeOwner(record) || "no pod"}, not ${to} ${whose}, and stays until it is released`;
}

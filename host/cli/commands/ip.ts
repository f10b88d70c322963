/** `berthctl ip` and `berthctl pod`: which pod has an address, and which addresses a pod has. */
import type { AddressRecord } from "../../records/address-record.ts";
import type { AllocationRecord } from "../../records/allocation-record.ts";
import { describeMember } from "../../resources/member.ts";
import { ALLOCATION_TABLE, describeOwner } from "../allocation-table.ts";
import { parseAddressName } from "../arguments.ts";
import { type CommandLine, NAMESPACE_OF_POD, type OutputFlags, withOutput, withRecordOutput } from "../command-line.ts";
import { ExitCode } from "../exit-code.ts";

export function addIp(cli: CommandLine): void {
  const examples = ["ip 10.6.0.21", "ip fd00:6::21 -o yaml"];
  withRecordOutput(cli.command("ip", "Show which pod has an address, and which pools it belongs to", examples))
    .argument("<address>", "address, of all address spaces; or address/space")
    .action((text: string, flags: OutputFlags) =>
      cli.run(flags, async ({ source, out }) => {
        const { address, space, name } = parseAddressName(text);
        const isIncluded = ({ addressSpace }: { addressSpace: string }) => space === "" || addressSpace === space;
        const opened = await source();
        const { places, allocations, ...rest } = await opened.address(address, space);
        const found = { ...rest, places: places.filter(isIncluded), allocations: allocations.filter(isIncluded) };
        const scope = await opened.scope();
        const lines = [...(scope === undefined ? [] : [scope]), ...describeAddress(found, name)];
        await out.report(lines, found);
        return found.allocations.length + found.places.length > 0 ? ExitCode.Success : ExitCode.Problem;
      }),
    );
}

export function addPod(cli: CommandLine): void {
  const examples = ["pod shop/web-0", "pod web-0 -n shop -o yaml"];
  withOutput(cli.command("pod", "Show the addresses of a pod, and those that are retained for it", examples))
    .argument("<pod>", "namespace/name, or the name with -n")
    .option("-n, --namespace <name>", NAMESPACE_OF_POD)
    .action((pod: string, flags: OutputFlags & { namespace?: string }) =>
      cli.run(flags, async ({ source, out, note }) => {
        const { namespace, name } = await cli.pod(pod, flags.namespace);
        const opened = await source();
        const [found, scope] = [await opened.pod({ namespace, name }), await opened.scope()];
        if (out.isDocument) await out.value(found);
        else {
          const { pod: object, isMissing } = found;
          const state =
            object === undefined ? [] : [`${object.phase} on node ${object.node || "none"}`, `UID ${object.uid}`];
          if (isMissing) state.push("there is no such pod");
          const heading = `pod ${namespace}/${name}${state.length > 0 ? `: ${state.join(", ")}` : ""}`;
          await out.list(ALLOCATION_TABLE, found.allocations, scope === undefined ? heading : `${scope}\n${heading}`);
        }
        if (found.allocations.length > 0) return ExitCode.Success;
        const elsewhere = new Set((await opened.allocations({ pod: name })).map((record) => record.namespace));
        const hint = elsewhere.size === 0 ? "" : `; ${name} of namespace ${[...elsewhere].join(", ")} has some`;
        note(`No address of pod ${namespace}/${name}${hint}`);
        return ExitCode.Problem;
      }),
    );
}

/** Lines for a person: each record, then each pool. `name`: of the address, as it was asked for. */
function describeAddress({ address, places, allocations, conditions = [] }: AddressRecord, name: string): string[] {
  const records = allocations.flatMap((record) => describeRecord(record));
  const pools = places.map(({ pool, subnet, addressSpace, excluded, block, reserved }) => {
    const space = addressSpace === "" ? "" : `, address space ${addressSpace}`;
    const isUsed = allocations.some((record) => record.addressSpace === addressSpace);
    const isKept = reserved?.owner !== undefined && reserved.excluded === undefined;
    const notFree = isKept ? "kept in" : "never allocated from";
    const state = excluded === undefined ? (isUsed ? "belongs to" : "free in") : notFree;
    const why = excluded ?? (block === undefined ? undefined : `block ${block}`);
    return `${address}: ${state} pool ${pool} (${subnet}${space})${why === undefined ? "" : `: ${why}`}`;
  });
  if (records.length + pools.length > 0) return [...records, ...pools, ...conditions];
  const [, space] = name.split("/");
  const where = space === undefined ? "" : `of address space "${space}" `;
  return [`${name}: no pool ${where}has it in its subnet, and it has no record`];
}

function describeRecord(record: AllocationRecord): string[] {
  const { cursor, state, node, pool, network, containerId, owner, since, quarantine, workload } = record;
  const facts = [
    ["pod", describeOwner(record)],
    ["interface", record.interface],
    ["node", node],
    ["pool", pool],
    ["network", network],
    ["container", containerId],
    ["owner", owner],
    ["since", since],
    ["quarantine", quarantine?.reason],
    ["workload", workload && describeMember(workload)],
  ];
  const shown = facts.filter(([, value]) => value !== undefined && value !== "");
  return [`${cursor}: ${state}`, ...shown.map(([title = "", value]) => `  ${title.padEnd(10)}  ${value}`)];
}
